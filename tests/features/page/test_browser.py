"""Pages in a real browser: charts have marks, controls work, and nothing is asked of anyone."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import record_files, records, tables
from support.browser import Browser, browser, needs_browser, needs_page
from support.cli import Matbench
from support.launches import UNEVEN, analysed, sampled
from support.paths import ROOT

from matbench.features.explain.record import Bottleneck, Explanation, Limits, Traffic
from matbench.features.page import document
from matbench.features.tune.record import SearchSpace, TuningRecord
from matbench.model import Problem
from matbench.records import reading
from matbench.records.comparison import Comparison
from matbench.records.outcome import Accuracy, BlockTimes, ErrorCells, Outcome, Sustained

pytestmark = [needs_page, needs_browser]
LADDER = ROOT / "results" / "h200-ladder.jsonl"
LASTING = Sustained(
    blocks_ns=(1e6,), mean_ns=1e6, launches=9, duration_s=9, warm_up_s=9, steady=True, power_w=300.0
)
HOSTILE = "</script><img src=x onerror='window.hit = 1'>"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


#: Some of the ladder at three sizes, which are drawn in a moment.
NAMES = {"pipelined", "sliced-k", "thread-tile-1d", "tf32x3", "cublas", "cublas-tf32"}
FEW = [
    outcome
    for outcome in record_files.read(LADDER)[1]
    if outcome.case.problem.size in ("256", "1000", "1024") and outcome.case.kernel in NAMES
]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "few.html"
    path.write_text(document.page(FEW, record_files.read(LADDER)[0]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small page with every section, whose records mean no good."""
    path = tmp_path_factory.mktemp("page") / "everything.html"

    def outcome(kernel: str, n: int, ms: float, **changes: Any) -> Any:
        accuracy = Accuracy(ms * 1e-7, 1e-8, 0.1)
        problem = Problem(n, n, n)
        return tables.outcome(kernel, ms, problem=problem, accuracy=accuracy, **changes)

    names = ["a", "=b,c&d=e", HOSTILE]
    blocks = BlockTimes(median_ns=1e3, imbalance=0.1)
    timed = [
        outcome(name, n, 1.0 + i, blocks=blocks, sustained=LASTING)
        for i, name in enumerate(names)
        for n in (64, 128)
    ]
    cells = ErrorCells(
        shape=(200, 130), step=4, wrong_elements=9, exact=False, least_power=1,
        rows=("." * 32 + "0", *(["." * 33] * 48), "!" * 33),
    )  # fmt: skip
    wrong = records.outcome(
        HOSTILE, status="wrong", reason=HOSTILE, notes=(HOSTILE,), error_map=cells
    )
    sure = Comparison(0.5, (0.4, 0.6), "FASTER", 1, (10, 10), HOSTILE)
    compared = [records.in_turns(sure, timed[i], timed[j]) for i, j in ((0, 2), (0, 4), (2, 4))]
    space = SearchSpace(combinations=2, drawn=2, candidates=2, refused=0)
    tuned = [
        TuningRecord(outcome=timed[i], round=i, is_best=not i, tried=2, space=space) for i in (0, 2)
    ]
    profile = msgspec.structs.replace(analysed(sampled(UNEVEN)), device=HOSTILE)
    limits = Limits(
        device=timed[0].case.device, driver=HOSTILE, copy_bytes_per_s=1e9, read_bytes_per_s=1e9,
        fma_flop_per_s=1e10, sm_mhz=None, when="",
    )  # fmt: skip
    explained = Explanation(
        case=timed[0].case, traffic=Traffic(1, 1, 1.0), limits=limits, bound=Bottleneck(by="memory")
    )
    made: list[reading.Finding] = [*compared, *tuned]
    findings: list[tuple[reading.Finding, list[Outcome]]]
    findings = [*((record, [timed[0]]) for record in made), (profile, [timed[4]]),
                (explained, [timed[0]])]  # fmt: skip
    about = tables.environment(argv=("run", HOSTILE))
    path.write_text(document.page([*timed, wrong], [about], findings), encoding="utf-8")
    return path


MARKS = """[...document.querySelectorAll('section:not([hidden]) .chart:has(svg)')].map((chart) =>
  chart.querySelectorAll('.role-mark path, .role-mark text, .role-mark line').length)"""


def texts(window: Browser, selector: str, what: str = "textContent") -> list[Any]:
    """What each element says."""
    found = f"[...document.querySelectorAll({selector!r})].map((element) => element.{what})"
    return list(window.evaluate(found))


SECTIONS = "section:not([hidden]) h2"
#: The highlighted kernels, and how visible each line is.
PRESSED = "[...document.querySelectorAll('#speed [aria-pressed=\"true\"]')].map((b) => b.value)"
OPACITIES = """[...document.querySelectorAll('#speed .mark-line path')].map((p) =>
  p.style.opacity || p.getAttribute('opacity'))"""


def test_charts_have_marks_and_names_and_ask_nothing(window: Browser, few: Path) -> None:
    window.open(few)
    marks = window.evaluate(MARKS)
    assert len(marks) >= 8
    assert min(marks) > 0
    assert window.requests() == [few.as_uri()]
    assert window.messages() == []
    names = texts(window, "#speed .chips button", "value")
    assert {"pipelined", "cublas", "thread-tile-1d"} <= set(names)
    headings = texts(window, "#speed h3", "innerText")
    assert {"Other sizes", "n = 1,000, float32 TFLOP/s; tick: at 1,024"} <= set(headings)
    assert all(texts(window, ".chart canvas", "width"))
    assert window.evaluate("document.getElementById('energy').hidden"), "no energy was recorded"


def test_figures_can_be_switched(window: Browser, few: Path) -> None:
    window.open(few)
    for metric, title in (("limit", "share of the limit"), ("speedup", "speedup over cublas")):
        window.choose("metric", metric)
        notes = window.evaluate("document.querySelector('#speed h3 small').textContent")
        assert title in notes
        assert min(window.evaluate(MARKS)) > 0
    window.choose("base", "tf32x3")
    assert "over tf32x3" in window.evaluate("document.querySelector('#speed h3 small').textContent")
    assert window.messages() == []


def test_the_table_filters_and_sorts(window: Browser, few: Path) -> None:
    window.open(few, "#every=1")
    cases = len(FEW)
    assert len(window.column("kernel")) == cases
    window.choose("q", "pipelined bm=128")
    assert set(window.column("kernel")) == {"pipelined"}
    assert f"of {cases} cases" in window.evaluate("document.getElementById('count').textContent")
    window.evaluate("document.querySelector('.results [data-key=\"max_rel_err\"]').click()")
    errors = [float(text) for text in window.column("max rel err")]
    assert errors == sorted(errors, reverse=True)
    window.evaluate("document.querySelector('.results [data-key=\"max_rel_err\"]').click()")
    assert [float(text) for text in window.column("max rel err")] == errors[::-1]
    assert window.evaluate("document.querySelectorAll('[aria-sort=\"ascending\"]').length") == 1
    window.choose("q", "")
    window.choose("best", "1")
    assert len(window.column("kernel")) < cases


@pytest.mark.parametrize("width", [390, 1280])
def test_rows_are_low_and_begin_with_the_time(window: Browser, few: Path, width: int) -> None:
    window.open(few, "#every=1", width)
    heights = window.evaluate(
        "[...document.querySelectorAll('.results tr')].map(r => r.offsetHeight)"
    )
    assert max(heights) < 55, "two lines at most"
    titles = window.evaluate(
        "[...document.querySelectorAll('.results th')].map(h => h.textContent)"
    )
    assert [title.split()[0] for title in titles[:5]] == [
        "kernel", "parameters", "size", "time", "status"
    ]  # fmt: skip


def test_the_url_keeps_what_was_chosen(window: Browser, few: Path) -> None:
    window.open(few)
    window.choose("metric", "cublas")
    window.choose("q", "sliced")
    window.evaluate("document.querySelector('.chips button[value=\"sliced-k\"]').click()")
    window.evaluate("document.querySelector('.results [data-key=\"median_ns\"]').click()")
    state = window.evaluate("location.hash")
    before = window.column("time")
    window.open(few, state)
    assert window.evaluate("document.querySelector('[data-state=\"metric\"]').value") == "cublas"
    assert window.evaluate("document.querySelector('[data-state=\"q\"]').value") == "sliced"
    assert window.column("time") == before
    assert window.evaluate(PRESSED) == ["sliced-k"]
    assert set(window.evaluate(OPACITIES)) == {"1", "0.12"}


def copied(window: Browser) -> str:
    window.evaluate(
        "void (navigator.clipboard.writeText = async (text) => { window.copied = text; })"
    )
    window.evaluate("document.getElementById('copy-csv').click()")
    return str(window.evaluate("window.copied"))


def test_what_is_shown_can_be_copied(window: Browser, few: Path, everything: Path) -> None:
    window.open(everything)
    assert "'=b,c&d=e" in copied(window), "no cell of a spreadsheet is a formula"
    window.open(few, "#q=cublas-tf32&sort=size")
    rows = list(csv.DictReader(copied(window).splitlines()))
    assert (rows[0]["kernel"], rows[0]["size"]) == ("cublas-tf32", "256")
    assert float(rows[0]["median_ns"]) > 1000


def test_every_section_without_harm(window: Browser, everything: Path) -> None:
    window.open(everything)
    assert texts(window, SECTIONS) == [
        "Speed", "Error", "Roofline", "Energy", "Samples", "Verdicts", "Blocks", "Explanations",
        "Wrong and failed", "Results",
    ]  # fmt: skip
    assert min(window.evaluate(MARKS)) > 0
    assert window.evaluate("window.hit === undefined && document.images.length") == 0
    assert HOSTILE in window.evaluate("document.getElementById('wrong').textContent")
    assert HOSTILE in window.column("kernel")
    assert "FASTER" in window.evaluate("document.getElementById('verdicts').textContent")
    assert window.requests() == [everything.as_uri()]
    assert window.messages() == []


COMMAND = "document.querySelector('#summary [data-views]:not([hidden]) pre').textContent"


def test_every_section_follows_the_chosen_view(window: Browser, tmp_path: Path) -> None:
    cards = {name: records.device(name=name) for name in ("green", "blue")}

    def of(device: str, *names: str) -> list[Outcome]:
        return [tables.outcome(f"{name}-{device}", 1.0 + i, cards[device])
                for i, name in enumerate(names)]  # fmt: skip

    green, blue = of("green", "a", "b", "c"), of("blue", "a", "b", "c", "d")
    wrong = tables.outcome("bad", None, cards["green"], status="wrong", reason="off by one")
    verdict = Comparison(0.5, (0.4, 0.6), "FASTER", 1, (10, 10), "")
    compared = records.in_turns(verdict, blue[1], blue[0])
    path = tmp_path / "views.html"
    environments = [
        tables.environment(argv=("run", device), devices=(card,)) for device, card in cards.items()
    ]
    page = document.page([*green, wrong, *blue], environments, [(compared, [blue[1], blue[0]])])
    path.write_text(page, encoding="utf-8")

    def require(here: str, there: str, *sections: str) -> None:
        assert window.evaluate("document.title").startswith(f"a-{here} is the fastest of ")
        assert texts(window, SECTIONS) == [*sections, "Results"]
        assert texts(window, "nav a:not([hidden])") == ["Summary", *sections, "Results"]
        assert there not in window.evaluate("document.querySelector('main').innerText")
        assert window.evaluate(COMMAND) == f"matbench run {here}"
        assert set(window.column("device")) == {here}
        assert min(window.evaluate(MARKS)) > 0

    window.open(path)
    require("blue", "green", "Speed", "Error", "Samples", "Verdicts")
    window.choose("view", "1")
    require("green", "blue", "Speed", "Error", "Samples", "Wrong and failed")
    window.choose("view", "0")
    require("blue", "green", "Speed", "Error", "Samples", "Verdicts")
    window.choose("every", "1")
    assert set(window.column("device")) == {"green", "blue"}
    assert window.messages() == []


def test_speed_against_energy(window: Browser, matbench: Matbench, tmp_path: Path) -> None:
    file = ROOT / "results" / "h100-sustained.jsonl"
    path = tmp_path / "page.html"
    matbench("report", file, "--page", path)
    window.open(path)
    assert "Energy" in window.evaluate("document.querySelector('nav').textContent")
    label = window.evaluate("document.querySelector('#energy .chart').getAttribute('aria-label')")
    assert label == (
        "Sustained TFLOP/s over GFLOP/J of 2 kernels. The most work for a joule: bf16-wgmma."
    )
    assert len(texts(window, "#energy svg .mark-symbol path")) == 2
    assert window.column("J per launch") == ["1.13", "1.16"]
    assert window.column("sustained")[0] == "676 TFLOP/s"


def test_pointing_at_a_chart_tells_all_figures(window: Browser, everything: Path) -> None:
    from selenium.webdriver import ActionChains

    window.open(everything)
    point = window.driver.find_elements("css selector", "#speed .mark-symbol path")[-1]
    ActionChains(window.driver).move_to_element(point).perform()
    window.until("document.querySelector('#vg-tooltip-element.visible')")
    told = window.evaluate("document.getElementById('vg-tooltip-element').textContent")
    assert "GFLOP/s" in told
    assert "max rel err" in told
    assert window.evaluate("document.images.length") == 0


def test_clocked_launches_and_wrong_cells_have_pictures(window: Browser, everything: Path) -> None:
    window.open(everything)
    bars = "document.querySelectorAll('#blocks .full .mark-rect.layer_0_marks path')"
    assert window.evaluate(f"{bars}.length") == len(UNEVEN)
    widths = window.evaluate(f"[...{bars}].map((bar) => bar.getBoundingClientRect().width)")
    longest, shares = max(widths), sorted(block.end - block.start for block in UNEVEN)
    expected = [share / shares[-1] for share in shares]
    assert sorted(width / longest for width in widths) == pytest.approx(expected, abs=0.02)
    assert window.evaluate("document.querySelectorAll('#wrong canvas').length") == 1
    said = window.evaluate("document.getElementById('wrong').textContent")
    for part in ("9 of 26,000 elements wrong", "the worst of 4 × 4", "black: NaN or infinite"):
        assert part in said
    roofs = window.evaluate("document.getElementById('roofline').textContent")
    assert "float32 10.0 GFLOP/s, measured" in roofs
    assert "no limit" not in roofs


def test_all_samples_are_drawn_and_stragglers_hide_nothing(window: Browser, tmp_path: Path) -> None:
    draw = random.Random(1)
    samples = [draw.uniform(1e6, 1.1e6) for _ in range(30_000)]
    samples[17_000] = 9e6
    found = tables.outcome("many", 1.0, cold=records.timing(samples_ns=samples))
    path = tmp_path / "many.html"
    path.write_text(document.page([found], [tables.environment()]), encoding="utf-8")
    assert path.stat().st_size < 1.5e6
    window.open(path)
    assert "without the slowest 0.5%" in "".join(texts(window, "#samples"))
    labels = texts(window, "#samples .role-axis-label text")
    marked = [text.replace(",", "") for text in labels if "%" not in text]
    assert len(marked) > 4
    assert max(map(float, marked)) < 1200, "the straggler is in the other chart only"


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out(window: Browser, everything: Path, few: Path, width: int) -> None:
    """A table that is too wide says that it scrolls."""
    for page in (everything, few):
        window.open(page, width=width)
        assert window.evaluate("document.documentElement.scrollWidth") <= width
    hint = "getComputedStyle(document.querySelector('#summary .wide'), '::before').content"
    window.until(f"{hint}.includes('scroll sideways') === {str(width == 390).lower()}")


def test_axe_finds_nothing_serious(window: Browser, everything: Path) -> None:
    axe = pytest.importorskip("axe_selenium_python").Axe(window.driver)
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        window.open(everything)
        axe.inject()
        found = axe.run()
        bad = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in bad] == []
        assert len(found["passes"]) > 10


def test_the_keyboard_reaches_everything(window: Browser, everything: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    window.open(everything)
    window.evaluate("document.querySelector('#speed .chips button').focus()")
    ActionChains(window.driver).send_keys(Keys.SPACE, Keys.TAB, Keys.SPACE).perform()
    assert window.evaluate(PRESSED) == ["a", "=b,c&d=e"]
    window.open(everything, window.evaluate("location.hash"))
    assert window.evaluate(PRESSED) == ["a", "=b,c&d=e"], "whatever characters a name has"
    assert sorted(window.evaluate(OPACITIES)) == ["0.12", "1", "1"]
    ActionChains(window.driver).send_keys(Keys.ESCAPE).perform()
    assert window.evaluate(PRESSED) == []
    assert "only" not in window.evaluate("location.hash")
    outside = window.evaluate(
        "[...document.querySelectorAll('button, select, input, a, summary')]"
        ".filter((e) => e.offsetParent && e.tabIndex < 0).length"
    )
    assert outside == 0
