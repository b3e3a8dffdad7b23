"""`matbench compare OLD.jsonl NEW.jsonl`, and the exit codes that CI relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import records
from support.cli import Matbench, Refusal
from support.golden import paged
from support.record_files import write
from support.records import repeated

from matbench.model import Conditions
from matbench.records.outcome import Outcome


def steady(kernel: str = "tiled", factor: float = 1.0, **changes: Any) -> Outcome:
    """A case whose samples hardly vary."""
    return records.outcome(kernel, cold=records.steady(factor), **changes)


def busy(share: float, factor: float = 1.0, kernel: str = "tiled") -> list[Outcome]:
    """A case in five processes, while other programs took this share of the processors."""
    moments = (Conditions(), Conditions(others_share=share))
    return repeated(records.outcome(kernel, cold=records.steady(factor, conditions=moments)))


WRONG = records.outcome("tiled", status="wrong", reason="integers: 3 of 9 wrong")
GATE = ("--fail-if-slower", "5%")
LOOSE, LENIENT = ("--fail-if-slower", "60%"), (*GATE, "--allow-skips")
#: The outcomes before and after, the options of each call, and the driver after.
CALLS: dict[str, tuple[Any, ...]] = {
    "as fast": (repeated(steady()), repeated(steady()), [GATE]),
    "faster": (repeated(steady()), repeated(steady(factor=0.5)), [GATE]),
    "slower by less": (repeated(steady()), repeated(steady(factor=1.04)), [GATE]),
    "slower": (repeated(steady()), repeated(steady(factor=1.2)), [GATE, ()]),
    # Two processes of the same code differ by as much on a CPU.
    "one process each": ([steady()], [steady(factor=1.2)], [GATE, LENIENT, LOOSE, ()]),
    "one process each, much slower": ([steady()], [steady(factor=1.5)], [GATE]),
    "another driver": (
        repeated(steady()), repeated(steady(factor=1.2)),
        [GATE, ("--fail-if-slower", "900%"), LENIENT, ()], "99",
    ),
    "another load": (
        [*busy(0.1), *busy(0.1, kernel="kahan")], [*busy(0.7, 1.2), *busy(0.6, kernel="kahan")],
        [GATE],
    ),
    # One case can be judged: that decides, whether it is slower or not.
    **{
        f"another load at one, {factor} × at the other": (
            [*busy(0.1), *busy(0.1, kernel="kahan")],
            [*busy(0.7, 1.2), *busy(0.1, factor, kernel="kahan")],
            [GATE],
        )
        for factor in (1.0, 1.2)
    },
    # However narrow its interval; the other case is UNDECIDED by its own.
    "another load at one, one process at the other": (
        [*busy(0.1), steady("kahan")], [*busy(0.7), steady("kahan", factor=1.2)], [GATE],
    ),
    "broken": ([steady()], [WRONG], [GATE]),
    "verdicts, and cases of one file alone": (
        [*repeated(steady()), steady("kahan"), steady("naive-2d")],
        [*repeated(steady(factor=1.1)), steady("kahan", 0.5), steady("mine")],
        [()],
    ),
    "nothing to judge": ([steady()], [steady("naive-2d")], [GATE, LENIENT]),
}  # fmt: skip


@pytest.mark.usefixtures("own_state")
def test_pages(matbench: Matbench, file_regression: Any) -> None:
    found = {}
    for name, (old, new, calls, *driver) in CALLS.items():
        write(Path("old.jsonl"), *old)
        device = records.device(driver=(driver or ["1.2"])[0])
        write(Path("new.jsonl"), *new, about=records.environment(devices=(device,)))
        for number, options in enumerate(calls):
            done = matbench("compare", "old.jsonl", "new.jsonl", *options, code=None)
            shown = "" if number else f"\n\n{done.stdout.strip()}"  # the same in each
            told = f"{done.stderr}exit code {done.exit_code}"
            found[f"{name}: {' '.join(options) or 'no gate'}{shown}"] = told
        Path("old.jsonl").unlink()
        Path("new.jsonl").unlink()
    file_regression.check(paged(found), encoding="utf-8")


def test_same_summary(matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, summary = (tmp_path / name for name in ("old.jsonl", "new.jsonl", "summary.md"))
    write(old, records.outcome("tiled"), records.outcome("kahan"))
    write(new, records.outcome("tiled", status="wrong", reason="3 of 9"), records.outcome("kahan"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    summary.write_text("before\n")
    matbench("compare", old, new)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "")
    matbench("compare", old, new)
    text = summary.read_text()
    assert text.startswith("before\n### 1 case is wrong or failed\n")
    assert text.count("### ") == 1
    assert "- tiled TILE=16 at 17x33x65 is now wrong: 3 of 9\n" in text


@pytest.mark.usefixtures("own_state")
@pytest.mark.parametrize("target", ["folder", "folder/no/file.md", "\udcff/x"])
def test_a_summary_that_cannot_be_written_is_told_before_measuring(
    target: str, refusal: Refusal, nothing_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("folder").mkdir()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", target)
    for names in (("tiled", "naive-2d"), ("kept.jsonl", "kept.jsonl")):
        told = refusal("compare", *names)
        assert told.startswith("GITHUB_STEP_SUMMARY=")
        assert "cannot be written" in told
