"""The live display of a run: what it shows on a terminal, and how it counts steps."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from support.cli import QUICK
from support.kernels import SPIN_BODY, kernel_text
from support.records import outcome
from support.terminal import Session, on_terminal

from matbench.cli import progress
from matbench.model import DeviceInfo, Problem
from matbench.records.outcome import Outcome

BAR = re.compile(r"^(?:\[ )?[━╸╺ ]{10,}(?:\] | )+(\d)/6  0:\d\d", re.MULTILINE)
COLOURED = re.compile(r"\x1b\[[0-9;]*[39][0-7][;m]")
FAILED = ("wrong c-liar TILE=8 at 9: ", "failed d-typo TILE=8 at 9: ")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels: one is good, one prints, one is wrong, one does not compile, one spins."""
    folder = tmp_path_factory.mktemp("kernels")
    word = 'if (row + column == 0) printf("a word from the kernel\\n");'
    for name, text in {
        "a-good": kernel_text("a-good"),
        "b-talks": kernel_text("b-talks").replace("    float sum", f"    {word}\n    float sum"),
        "c-liar": kernel_text("c-liar").replace("k < K", "k < K - 1"),
        "d-typo": kernel_text("d-typo").replace("sum +=", "summ +="),
        "z-spins": kernel_text("z-spins", body=SPIN_BODY),
    }.items():
        (folder / f"{name}.cu").write_text(text, encoding="utf-8")
    return folder


def sweep(folder: Path, *, last: str = "z-spins", **environment: str) -> Session:
    """Six cases, of which one is wrong and one failed; Ctrl-C comes when the display has the last.

    That one spins: the others may all be done before the display is drawn again.
    """
    return on_terminal(
        "run", "c-liar", "d-typo", "b-talks", "a-good", "--kernels-dir", folder,
        "naive-2d", last, "--sizes", "9", "--set", "TILE=8", *QUICK,
        width=80, height=24, environment=environment,
        interrupt_when=lambda text: bool(re.search(r"running +z-spins.*FLOP/s", text, re.DOTALL)),
    )  # fmt: skip


def test_a_sweep_on_a_usual_terminal(kernels: Path, device: DeviceInfo) -> None:
    session = sweep(kernels)
    assert session.code == 130
    assert COLOURED.search(session.written)
    assert max(cell_len(line) for line in session.lines if "━" in line) <= 80
    text = "\n".join(session.lines).replace("^C", "")  # echoed by the terminal
    assert BAR.search(text)
    # Failures come at once, not at the end; they are not drawn again. (A case that is over before
    # the display is drawn again may never be on it, but the last one is.)
    for failed in FAILED:
        [line] = [line for line in session.lines if line.startswith(failed)]
        assert re.search(r"elements wrong|summ|…", line)
        assert text.index(failed) < text.index(" z-spins TILE=8 at 9")
    assert "kernel output: a word from the kernel" in session.lines
    display, _, end = text.rpartition("fastest so far\n")
    assert display.endswith("running    z-spins TILE=8 at 9\n")
    assert re.match(r"9  (a-good|b-talks|naive-2d) TILE=8( or \w.*?)?  [\d.]+ [kMG]FLOP/s\n", end)
    # The display is gone in the end; failures are in the table as well.
    assert "━" not in end
    assert "3 measured, 1 wrong, 1 failed, 0 skipped" in end
    assert re.search(r"^ *c-liar .*wrong", end, re.MULTILINE)


def test_a_terminal_that_cannot_move_its_cursor_shows_failures_only(
    kernels: Path, device: DeviceInfo
) -> None:
    session = sweep(kernels, last="kahan", TERM="dumb")
    assert "\x1b" not in session.written
    assert "/6" not in session.written
    text = "\n".join(session.lines)
    for line in FAILED:
        assert line in text.partition("kernel output")[0]
    assert re.search(r"^ *c-liar .*wrong", text, re.MULTILINE)


def test_what_is_printed_to_a_file_meanwhile_goes_there(
    kernels: Path, tmp_path: Path, device: DeviceInfo
) -> None:
    source = tmp_path / "foreign.cu"
    text = (kernels / "a-good.cu").read_text(encoding="utf-8")
    bare = text[text.index('extern "C"') :].replace("TILE", "16")
    source.write_text(bare, encoding="utf-8")
    piped = tmp_path / "stdout"
    session = on_terminal("adopt", source, stdout_to=piped)
    assert session.code == 0
    assert re.search(r"0:\d\d", session.written)
    first, *_, wrote, following = piped.read_text(encoding="utf-8").splitlines()
    assert first.startswith("`a_good` computes ")  # printed while the display was there
    assert first not in session.written
    assert wrote.startswith("wrote ")
    assert following.startswith("next: matbench run ")


def test_time_left_is_that_of_the_cases_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    small, large = (outcome(problem=Problem(n, n, n)) for n in (64, 512))
    wide = outcome(problem=Problem(512, 512, 512), params={"TILE": 32}, status="skipped")
    plan = [small.case, small.case, large.case, large.case]
    console = Console(file=io.StringIO(), force_terminal=True)
    display = progress.Display(console, 7, plan)

    def step(found: Outcome, seconds: float) -> float | None:
        display.begin(found.case.label, found.case)
        now[0] += seconds
        display.done(found)
        return display.state().left_s

    assert display.state().left_s is None
    display.done(large)  # known before: it took no time here
    assert step(small, 1.0) is None
    assert step(wide, 0.0) is None  # skipped: neither is one of the plan done, nor its time known
    assert step(large, 10.0) == pytest.approx(1.0 + 10.0)
    display.begin("the last but one", small.case)
    now[0] += 0.25
    assert display.state().left_s == pytest.approx(0.75 + 10.0)
    display.done(small)
    assert display.state().left_s == pytest.approx(10.0)
    assert step(large, 12.0) is None
    assert (display.state().done, display.state().elapsed_s) == (6, 23.25)


def test_rounds_of_a_case_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    small, large = (outcome(problem=Problem(n, n, n)) for n in (64, 512))
    console = Console(file=io.StringIO(), force_terminal=True)
    display = progress.Display(console, 4, [small.case, small.case, large.case, large.case])
    for share, seconds in ((0.5, 2.0), (1.0, 1.0)):
        display.begin("small", small.case)
        now[0] += seconds
        display.begin("large", large.case)  # before the main thread has the outcome
        now[0] += 10 * seconds
        display.done(small, share=share)
        state = display.state()
        assert (state.done, state.begun) == ((0, 0.5) if share < 1 else (1, 0.5))
        display.done(large, share=share)
    assert display.state().done == 2
    assert display.state().left_s == pytest.approx(3.0 + 30.0)


def test_failures_of_an_earlier_run_are_not_reported_again() -> None:
    display = progress.Display(Console(file=(shown := io.StringIO()), force_terminal=True), 2, ())
    wrong = outcome("liar", status="wrong", reason="all of it")
    display.done(wrong)
    assert shown.getvalue() == ""
    display.begin("liar")
    display.done(wrong)
    assert "all of it" in shown.getvalue()
    assert display.state().done == 2


def test_steps_without_outcomes_are_counted_when_the_next_begins() -> None:
    display = progress.Display(Console(file=io.StringIO(), force_terminal=True), 3, ())
    display.begin("one")
    assert (display.state().done, display.state().labels) == (0, ["one"])
    display.begin("two")
    assert (display.state().done, display.state().labels) == (1, ["two"])


def test_the_cases_of_several_devices_are_shown_together() -> None:
    display = progress.Display(Console(file=io.StringIO(), force_terminal=True), 3, ())
    display.begin("one", place="cuda:0")
    display.begin("two", place="cuda:1")
    state = display.state()
    assert (state.done, state.labels, state.doing) == (0, ["cuda:0  one", "cuda:1  two"], "")
    display.begin("three", place="cuda:0")
    assert (display.state().done, display.state().labels[0]) == (1, "cuda:0  three")
    display.end("cuda:1")
    assert (display.state().done, display.state().labels) == (2, ["three"])
    display.end("cuda:1")  # nothing was begun there
    assert display.state().done == 2
