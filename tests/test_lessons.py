"""Kernel files as lessons: headers true to the results, pages and drawings up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from support import record_files, toml
from support.h200 import H200
from support.machine_code import needs_nvdisasm
from support.paths import ROOT, script
from support.records import outcome

from matbench.analysis import ranking
from matbench.cache import Cache
from matbench.cli.options import ConstantOptions
from matbench.features.explain import architectures, disassembly, machine_code
from matbench.features.explain.record import MachineCode
from matbench.kernelfile import catalogue, front_matter, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Kernel, Problem
from matbench.records import reading
from matbench.records.outcome import Outcome
from matbench.show import outcomes
from matbench.workloads import MATMUL

lessons, tables, generator = (
    script(f"docs/{name}.py") for name in ("lessons", "tables", "generate")
)

LADDER, GALLERY, TUTORIAL = PAGES = [
    ROOT / f"docs/{name}.md" for name in ("ladder", "gallery", "tutorial")
]
RECORDS = lessons.RECORDS
DOT = RECORDS / "h200-dot.jsonl"
KERNELS = catalogue.Catalogue(catalogue.builtin())
RUNGS = KERNELS.group("ladder")
#: Kernels of the gallery whose header tells figures of the records of products and dots.
TOLD = [
    kernel
    for kernel in KERNELS.group("gallery", None)
    if "Measured" in lessons.header(kernel) and kernel.name != "double-mma"
]
SVG = "{http://www.w3.org/2000/svg}"


def named(kernel: Kernel) -> str:
    return kernel.name


def kernel_of(source: str) -> Kernel:
    """A kernel whose text is this, below the front matter of `tiled`."""
    tiled = KERNELS.get("tiled")
    front = tiled.source.split("// ///\n", 1)[0]
    return msgspec.structs.replace(tiled, source=f"{front}// ///\n\n{source}")


def figures(name: str) -> set[str]:
    """What a header may say of a kernel, as far as it is recorded."""
    dots = [o for o in reading.Contents(DOT).outcomes
            if o.case.problem.inputs == "uniform" and o.case.problem.N == 2**28]  # fmt: skip
    told = {
        f"{row.work_per_s / 1e12:.2f} TB/s at N = 2^28, {row.of_limit:.0%} of copy bandwidth (H200)"
        for row in ranking.rank(dots)
        if row.outcome.case.kernel == name and row.work_per_s and row.of_limit
    }
    return told | {*lessons.figures(name).values()}


# -- rungs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", RUNGS, ids=named)
def test_a_rung_is_short_and_says_what_it_adds_and_what_is_predicted(rung: Kernel) -> None:
    assert len(rung.source.splitlines()) <= 200
    header = lessons.header(rung)
    assert [*header] == ["Adds", "Predicted"]
    assert all(1 <= len(lines) <= 3 for lines in header.values())


@pytest.mark.parametrize("rung", RUNGS, ids=named)
def test_the_page_has_a_section_for_each_rung(rung: Kernel) -> None:
    page = LADDER.read_text(encoding="utf-8")
    section = page.partition(f"\n## {rung.rung} {rung.name}\n")[2].partition("\n## ")[0]
    parts = ("**Predicted:** ", "**Machine code:** at most ", "**Measured:** ", "**Exercise.** ")
    for part in (*parts, "```cpp\n"):
        assert section.count(part) == 1, part
    assert f"](../{rung.path})" in section
    assert page.count(f"](#{rung.rung}-{rung.name})") == 1


def test_the_gallery_shows_what_is_no_rung() -> None:
    for kernel in KERNELS.kernels.values():
        if kernel.path.startswith("kernels/gallery/"):
            assert f"](../{kernel.path})" in GALLERY.read_text(encoding="utf-8")


#: The field's words, by the section that first shows what they mean.
WORDS = toml.table(Path(__file__).with_name("words-of-lessons.toml"))


@pytest.mark.parametrize("title", WORDS)
def test_the_fields_word_stands_where_the_code_first_shows_it(title: str) -> None:
    before, _, rest = LADDER.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    section = " ".join(rest.partition("\n## ")[0].split())
    for word in WORDS[title]:
        assert f"*{word}*" in section, word
        assert f"*{word}*" not in before, word


def test_what_a_step_takes_beyond_its_ceiling_is_derived_from_the_records() -> None:
    [row] = [line for line in lessons.misses().splitlines() if "`vectorized`" in line]
    # 1,024 tiles make 8 for the busiest of 132 multiprocessors, two at a time, with K / 8 steps.
    found = lessons.speeds("vectorized")["4096"].outcome
    left_ns = found.median_ns - CEILINGS["vectorized"]["code"]["least_ns"]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:] == ["53", "48.3", "40.6", "29.5", f"{left_ns * 1.98 / (4 * 512):.0f}"]


def test_commands_in_exercises_name_constants_that_are_swept() -> None:
    page = LADDER.read_text(encoding="utf-8")
    commands = re.findall(r"`matbench run ([^`]*)`", page)
    assert len(commands) > 5
    limits = H200.limits | {"max_shared_bytes_per_block": 232448}
    device = msgspec.structs.replace(H200, limits=limits)
    for command in commands:
        names, _, options = command.partition(" --")
        kernels = [KERNELS.get(name) for name in names.split()]
        settings = re.findall(r"set (\S+)", options)
        overrides = ConstantOptions(tuple(settings)).values(kernels)
        [size] = re.findall(r"sizes (\S+)", options)
        sizes = parse_problems(size, MATMUL)
        cases = sweep.cases(kernels, sizes, overrides, device)
        assert cases
        assert not [case.label for case in cases if case.skip is not None]


def ranked(together: list[Outcome]) -> list[Any]:
    return [*outcomes.report(together, [], fastest=True).rows()]


def test_what_is_not_recorded_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"problem": Problem(4096, 4096, 4096), "device": "NVIDIA H200"}
    beside = outcome("cublas", ms=10, group="baseline", **size)
    records = ranked([outcome("tiled", ms=20, **size), beside])
    monkeypatch.setattr(lessons, "products", lambda: records)
    tiled = lessons.rung("tiled", "// Stage: one value", 1)
    assert "- **Measured:** 6.9 TFLOP/s at n = 4096, 50% of cuBLAS (H200) (" in tiled
    assert "- **Measured:** – (" in lessons.rung("thread-1d", "// Multiply.", 1)
    table = lessons.ladder().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:4]]
    assert [row[2:] for row in cells] == [["", "8.35", "–", "–"], ["", "9.81", "–", "6.9 (50%)"]]
    # Records that come first count, as far as they have the kernel with cuBLAS beside it.
    first = ranked([outcome("tiled", ms=1, **size)])
    later = ranked([outcome("tiled", ms=10, **size), beside])
    monkeypatch.setattr(lessons, "products", lambda: [*first, *later, *records])
    [told] = lessons.figures("tiled").values()
    assert told == "13.7 TFLOP/s at n = 4096, 100% of cuBLAS (H200)"


def test_the_recorded_course_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    course = ranked(reading.Contents(RECORDS / "course.jsonl").outcomes)
    monkeypatch.setattr(lessons, "products", lambda: course)
    for rung in RUNGS:
        assert {*lessons.SIZES} <= lessons.speeds(rung.name).keys()


def test_the_tutorials_page_takes_its_kernels_in_their_order() -> None:
    page = TUTORIAL.read_text(encoding="utf-8")
    kernels = [kernel.name for kernel in KERNELS.group("tutorial")]
    assert re.findall(r"^\d\. \*\*`(.+)`\*\*: ", page, re.MULTILINE) == kernels
    table = lessons.tutorial()
    [single], [dynamic] = ([row for row in table.splitlines() if f"`{name}`" in row]
                           for name in ("single-block", "tiled-dynamic"))  # fmt: skip
    assert single.count("–") == 4
    assert re.findall(r", ([\d.]+) ×", dynamic) == ["0.999", "1.01", "11.2", "5.63"]


# -- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", TOLD, ids=named)
def test_what_a_header_calls_measured_is_in_the_results(kernel: Kernel) -> None:
    header = lessons.header(kernel)
    added, bound, speed = header
    assert (added, speed) == ("Adds", "Measured")
    assert bound in ("Predicted", "Limit")
    assert set(header["Measured"]) <= figures(kernel.name)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("split-k", "n = 4096", "n = 2048"),
        ("split-k", "97% of cuBLAS", "98% of cuBLAS"),
        ("bf16-wgmma", "747 TFLOP/s", "746 TFLOP/s"),
        ("bf16-wgmma", "of cuBLAS in bfloat16", "of cuBLAS"),
        ("dot-shuffle", "4.43 TB/s", "4.44 TB/s"),
        ("dot-shuffle", "110% of copy", "111% of copy"),
    ],
)
def test_a_figure_that_is_off_is_found(name: str, old: str, new: str) -> None:
    rung = KERNELS.get(name)
    changed = msgspec.structs.replace(rung, source=rung.source.replace(old, new))
    assert changed.source != rung.source
    assert not set(lessons.header(changed)["Measured"]) <= figures(name)


def test_a_header_ends_where_its_labels_do() -> None:
    text = "// Adds: one\n//   and more.\n// Limit: two\n// Measured: 1\n//   2\n//\n// Adds: no\n"
    assert lessons.header(kernel_of(text + "\nint x;\n")) == {
        "Adds": ["one", "and more."], "Limit": ["two"], "Measured": ["1", "2"]
    }  # fmt: skip
    assert lessons.header(kernel_of("// Words first.\n// Adds: no\n")) == {}
    assert lessons.header(kernel_of("int x;  // Adds: no\n")) == {}


# -- pages and drawings -----------------------------------------------------------------------


def test_a_page_that_is_out_of_date_is_found() -> None:
    asked = 'lessons.rung("copy-engine", "void keep_order()", 4, "helpers.cuh")'
    mark = f"<!-- [[[cog print({asked}) ]]] -->\n"
    page = f"before\n{mark}old\n<!-- [[[end]]] -->\nafter\n"
    new = generator.page(page)
    assert generator.page(new) == new != page
    assert new.startswith(f"before\n{mark}- **Predicted:** at most 55 TFLOP/s")
    assert new.endswith('dependents;");\n}\n```\n<!-- [[[end]]] -->\nafter\n')
    with pytest.raises(Exception, match="no kernel 'gone'"):
        generator.page(page.replace("copy-engine", "gone"))
    for text in ("nowhere", "float"):
        with pytest.raises(Exception, match="values to unpack"):
            generator.page(page.replace("void keep_order()", text))


DRAWINGS = sorted((ROOT / "docs" / "drawings").glob("*"))


def test_drawings_are_shown() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert sorted(set(re.findall(r"\(drawings/([^)]+)\)", text))) == [p.name for p in DRAWINGS]


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_is_small_and_nothing_leaves_it(path: Path) -> None:
    svg = path.read_text(encoding="utf-8")
    assert len(svg.encode()) < 12_000
    root = ElementTree.fromstring(svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for text in root.iter(f"{SVG}text"):
        at, size = float(text.attrib["x"]), float(text.attrib["font-size"])
        wide = (0.62 if "font-weight" in text.attrib else 0.54) * size * len(text.text or "")
        left = at - wide * {"start": 0, "middle": 0.5, "end": 1}[text.attrib["text-anchor"]]
        assert 0 <= left <= width - wide, text.text
        assert size <= float(text.attrib["y"]) <= height - 4, text.text


# -- results stay those of the code that was measured -------------------------------------------


def test_measured_files_are_known_by_their_code() -> None:
    """The files have been described anew since they were measured; their code is what it was."""
    _, dot = record_files.read(DOT)
    [found] = [one for one in dot if one.case.kernel == "dot-single-pass"][:1]
    kernel = KERNELS.get("dot-single-pass")
    assert found.case.sha256 != kernel.sha256
    assert tables.stale([found], [kernel]) == []
    other = kernel.source.replace("done = 0;", "done = 1;")
    assert other != kernel.source
    edited = front_matter.parse(other.encode(), "dot-single-pass.cu")
    assert tables.stale([found], [edited]) == ["dot-single-pass"]


# -- ceilings: bounds of what was measured, of the files as they are -----------------------------


COMMITTED = msgspec.json.decode((ROOT / "results" / "h200-ceilings.json").read_bytes())
CEILINGS = COMMITTED["rungs"]
#: Rungs whose code can be followed to its end.
DERIVED = [name for name, rung in CEILINGS.items() if rung["code"]["least_ns"]]
#: Timers on the GPU tick every 32 ns, and clocks are reported in steps of 15 MHz.
TOLERANCE = 1.01


def test_every_rung_has_a_ceiling() -> None:
    assert set(DERIVED) == set(CEILINGS)


def test_no_rung_was_faster_than_its_code_allows() -> None:
    """As far as they were recorded at these parameters on an H200."""
    size, slower = str(COMMITTED["n"]), []
    for name in lessons.PRODUCTS:
        for found in reading.Contents(RECORDS / name).outcomes:
            rung = CEILINGS.get(found.case.kernel, {})
            if (found.case.problem.size, found.case.params) != (size, rung.get("params")):
                continue
            if found.median_ns and "H200" in found.case.device:
                slower.append(found.case.kernel)
                assert rung["code"]["least_ns"] <= found.median_ns * TOLERANCE, found.case.label
    assert len({*slower}) > 15


@pytest.mark.parametrize("name", CEILINGS)
def test_a_ceiling_is_that_of_the_kernel_file(name: str) -> None:
    assert CEILINGS[name]["sha256"] == KERNELS.get(name).sha256


@pytest.mark.long
@needs_nvdisasm
@pytest.mark.parametrize("name", DERIVED)
def test_the_ceilings_are_derived_again(name: str) -> None:
    rung = CEILINGS[name]
    committed = msgspec.convert(rung["code"], MachineCode)
    n, limits = COMMITTED["n"], H200.limits | {"max_shared_bytes_per_block": 232448}
    device = msgspec.structs.replace(H200, limits=limits)
    case = sweep.case(KERNELS.get(name), Problem(n, n, n), rung["params"], device)
    made = disassembly.disassembled((9, 0), case.kernel, case.params, Cache())
    found = machine_code.machine_code(
        made, case, architectures.named("sm_90"), committed.multiprocessors, committed.sm_mhz
    )
    assert found.least_ns == pytest.approx(committed.least_ns)
    assert next(iter(found.cycles)) == next(iter(committed.cycles))
