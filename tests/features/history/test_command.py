"""`matbench history` on real repositories: which commit made a kernel slower?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench, Refusal, csv_rows
from support.kernels import SLOW_BODY, SPIN_BODY, changed, kernel_text, text_of
from support.optional import present
from support.repository import git
from support.terminal import on_terminal

from matbench.features.history import search
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome
from matbench.records.reading import Contents
from matbench.worker.worker import WorkerPool

pytestmark = [
    pytest.mark.usefixtures("own_state", "scripted_device"),
    pytest.mark.skipif(shutil.which("git") is None, reason="no git"),
]

#: A factor of 20 is found in a moment, whatever else the machine does.
BRIEFLY = ("--sizes", "48", "--max-time", "3")
MARGIN = ("--threshold", "200%")
#: What the header says changes how often the work is done, or makes C wrong.
WORK = "#define TURNS {turns}\n#define FACTOR {factor}\n"
BODY = '#include "work.h"\n#define WRONG FACTOR != 1\n' + changed(
    SLOW_BODY,
    ("turn < 20", "turn < TURNS"), ("TAKES 20", "TAKES TURNS"), ("] = sum;", "] = sum * FACTOR;"),
)  # fmt: skip
#: Of another workload.
REVERSE = text_of("reverse.cu")


@pytest.fixture
def project(own_state: None, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new repository, as the working folder."""
    monkeypatch.chdir(project)
    return project


def save(subject: str = "", *, turns: int = 1, factor: int = 1, body: str = BODY) -> str:
    """Write a version, and commit it if it has a subject; returns the short hash."""
    Path("mine.cu").write_text(kernel_text("mine", body=body))
    Path("work.h").write_text(WORK.format(turns=turns, factor=factor))
    if not subject:
        return "now"
    git(Path(), "add", ".")
    git(Path(), "commit", "-q", "-m", subject)
    return git(Path(), "rev-parse", "--short", "HEAD")


def kept(file: str | Path) -> list[str]:
    """The kinds of records in a file, in its order."""
    return [json.loads(line)["type"] for line in Path(file).read_text().splitlines()]


@pytest.mark.real
def test_the_commit_that_made_it_slower_is_blamed_and_no_other(
    matbench: Matbench, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the header counts, one of a comment does not, and so does what is not
    committed; the second call measures nothing."""
    first = save("Add it")
    save("Explain it", body=BODY + "// quite simple\n")
    slow = save("Do the work again, and again, until it is done for sure", turns=20)
    save(turns=1)
    arguments = ("history", "mine.cu", *BRIEFLY, *MARGIN)
    result = matbench(*arguments)
    answer = result.stdout.splitlines()[-2:]
    assert answer[0] == "This commit made it slower by more than 200%:"
    assert answer[1].startswith(f"{slow}: ")
    assert answer[1].endswith(" × slower · Do the work again, and again, until it is done for sure")
    assert "4 versions, of which 3 differ in code" in result.stdout
    assert "mine at 48" in result.stdout
    assert "Explain it" not in result.stdout
    assert "Do the work again, and again, u…" in result.stdout
    table = [line.split() for line in result.stdout.splitlines() if line[:7] in (first, slow)]
    assert [line[-1] for line in table[:2]][1] == "SLOWER"
    [file] = Path(project.parent, "state", "history").glob("mine-*.jsonl")
    assert f"kept in {file}" in result.stderr

    monkeypatch.setattr(WorkerPool, "worker", None)  # nothing is measured
    again = csv_rows(matbench(*arguments, "--format", "csv").stdout)
    assert [row["commit"] for row in again] == [first, slow, "now"]
    assert [row["verdict"] for row in again] == ["", "SLOWER", "FASTER"]
    assert [row["blamed"] for row in again] == ["false", "true", "false"]
    assert [row["against"] for row in again] == ["", first, slow]
    assert again[1]["subject"].startswith("Do the work again")
    assert float(again[1]["ratio"]) > 3 > float(again[2]["ratio"])


def test_what_cannot_be_timed_is_shown_and_passed_over(matbench: Matbench, project: Path) -> None:
    """Wrong, not built, without front matter, of another workload: the next right version is
    compared with the last right one, and whoever is between may be to blame as well."""
    good = save("Good")
    wrong = save("Wrong", factor=2)
    unbuilt = save("Unbuilt", body=f"#error no 'volatil'\n{BODY}")
    Path("mine.cu").write_text("// /// matbench\n// name = \n// ///\n")
    git(Path(), "commit", "-q", "-am", "Unreadable")
    Path("mine.cu").write_text(REVERSE)
    git(Path(), "commit", "-q", "-am", "Another")
    slow = save("Slow", turns=20)
    result = matbench("history", "mine.cu", *BRIEFLY, *MARGIN)
    assert f"{slow} (or {wrong}, {unbuilt}, " in result.stdout
    assert ", not timed): " in result.stdout
    assert "'volatil'" in result.stdout  # as its compiler says
    assert "not TOML" in result.stdout
    said = " ".join(result.stdout.split())
    assert "computes reverse int32 int32; now it is matmul float32 float32" in said
    assert "matbench-" not in result.stdout  # no file that is gone
    table = csv_rows(matbench("history", "mine.cu", *BRIEFLY, *MARGIN, "--format", "csv").stdout)
    assert [row["verdict"] for row in table] == ["", "wrong", *["failed"] * 3, "SLOWER"]
    assert table[-1]["against"] == good
    save(factor=3)  # wrong now
    matbench("history", "mine.cu", *BRIEFLY, *MARGIN, code=1)


@pytest.mark.long
def test_what_may_be_due_to_where_memory_lies_has_no_verdict(
    matbench: Matbench, project: Path
) -> None:
    for taken in (1000, 1020):
        save(f"Take {taken}", body=changed(BODY, ("TAKES TURNS", f"TAKES {taken}")))
    rows = csv_rows(matbench("history", "mine.cu", *BRIEFLY, "--format", "csv").stdout)
    assert [(row["verdict"], row["blamed"]) for row in rows[1:]] == [("UNDECIDED", "false")]


def test_a_bisection_measures_less(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    """And a later call for every version takes what it has measured."""
    commits = [save(f"Change {i}", turns=20 if i >= 5 else 1, body=f"#define X{i}\n{BODY}")
               for i in range(8)]  # fmt: skip
    picture, file = tmp_path / "times.svg", tmp_path / "mine.jsonl"
    given = ("history", "mine.cu", *BRIEFLY, "--resume", file)
    result = matbench(*given, "--bisect", "200%", "--picture", picture)
    assert result.stdout.splitlines()[-1].startswith(f"{commits[5]}: ")
    assert "by more than 200%" in result.stdout
    assert f"kept in {file}" in result.stderr
    assert kept(file).count("comparison") <= 8
    assert commits[1] not in result.stdout
    drawn = picture.read_text()
    assert commits[5] in drawn
    assert "Comparisons at 48" in drawn
    before = kept(file)
    measured = sum(row["verdict"] != "" for row in csv_rows(
        matbench(*given, *MARGIN, "--format", "csv").stdout))  # fmt: skip
    assert measured == 7
    new = kept(file)[len(before) :]
    assert new.count("comparison") <= 6  # of 7 neighbours, one at least was compared
    everything = json.loads(matbench(*given, *MARGIN, "--format", "json").stdout)
    assert {record["type"] for record in everything} == {"environment", "outcome", "comparison"}
    named = [(r["baseline_name"], r["candidate_name"]) for r in everything if "notes" in r and
             r["type"] == "comparison"]  # fmt: skip
    assert (f"mine@{commits[4]}", f"mine@{commits[5]}") in named


def test_since_a_revision(matbench: Matbench, project: Path) -> None:
    """Its own version is the first, even if another commit made it."""
    old = save("Slow, long ago", turns=20)
    save("Fast")
    git(Path(), "commit", "-q", "--allow-empty", "-m", "Something else")
    git(Path(), "tag", "v1")
    last = save("Still fast", body=BODY + "\nextern int unused;\n")
    given = ("history", "mine.cu", *BRIEFLY, *MARGIN, "--since", "v1")
    result = matbench(*given)
    assert "No commit is shown to have made it slower by more than 200%" in result.stdout
    assert "Something else" in result.stdout
    assert last in result.stdout
    assert old not in result.stdout
    told = matbench(*given[:-1], "HEAD", code=2).stderr
    assert "mine.cu: only one version since HEAD; nothing to compare" in told


def test_a_slowdown_that_a_second_comparison_does_not_confirm_is_nobodys(
    matbench: Matbench, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the second one finds both versions alike."""
    first = save("First")
    second = save("Second", turns=20)
    compare = search.RecordedBench.compare

    def twice(self: Any, old: Any, new: Any, *, anew: bool = False) -> ComparisonRecord:
        return compare(self, new if anew else old, new)

    monkeypatch.setattr(search.RecordedBench, "compare", twice)
    result = matbench("history", "mine.cu", *BRIEFLY, *MARGIN)
    assert "No commit is shown to have made it slower" in result.stdout
    assert "not confirmed: " in result.stdout
    assert first in result.stdout
    assert second in result.stdout


def test_only_new_and_open_are_measured(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    """Records are judged by the margin of this call. Other sizes are other measurements."""
    save("First")
    slow = save("Second", turns=4)
    file = tmp_path / "kept.jsonl"
    given = ("history", "mine.cu", "--max-time", "1", "--resume", file)
    assert "No commit is shown" in matbench(*given, "--sizes", "48", "--threshold", "900%").stdout
    assert kept(file) == ["environment", "outcome", "outcome", "comparison"]
    assert f"{slow}: " in matbench(*given, "--sizes", "48", "--threshold", "10%").stdout
    again = kept(file)[4:]  # the first comparison, too, if it leaves the new margin open
    assert again in (["environment", "comparison"], ["environment", "comparison", "comparison"])
    [first, *_] = [f for f, _ in Contents(file).findings if isinstance(f, ComparisonRecord)]
    within = sum(present(first.interval)) / 2 - 1
    matbench(*given, "--sizes", "48", "--threshold", str(within))
    assert kept(file)[4 + len(again) :][:2] == ["environment", "comparison"]
    before = kept(file)
    matbench(*given, "--sizes", "40", "--threshold", "900%")
    assert kept(file)[len(before) :] == kept(file)[:4]


@pytest.mark.parametrize(("versions", "options", "told"), [
    (None, (), "mine.cu: its versions need git, and a working tree around it"),
    ([""], (), "{here}: git lists no commits; is there one? If so, see `git fsck`"),
    (["Nothing", ""], (), "mine.cu: no commit has it; commit it first"),
    (["One"], (), "mine.cu: only one version; nothing to compare"),
    (["One", ""], (), "mine.cu: only one version; nothing to compare"),
    (["One"], ("--since", "v9"), "--since 'v9': no such revision; in CI, fetch it first "
     "(`fetch-depth: 0` in actions/checkout)"),
])  # fmt: skip
def test_what_has_no_history_is_refused_before_measuring(
    versions: list[str] | None, options: tuple[str, ...], told: str, refusal: Refusal,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None,
) -> None:  # fmt: skip
    """A version without a subject is not committed."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    if versions is not None:
        git(Path(), "init", "-q", "-b", "main", ".")
    for subject in versions or [""]:
        if subject == "Nothing":
            git(Path(), "commit", "-q", "--allow-empty", "-m", subject)
        else:
            save(subject, body=BODY + "// only a comment differs\n" * (not subject))
    found = refusal("history", "mine.cu", *BRIEFLY, *options)
    assert found == told.format(here=Path().absolute())


def test_a_shallow_clone_is_told(
    refusal: Refusal, project: Path, tmp_path: Path, nothing_runs: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    save("One")
    save("Two", turns=2)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    told = "mine.cu: only one version; fetch older ones with `git fetch --unshallow`"
    assert refusal("history", "mine.cu", *BRIEFLY) == told


def test_bad_arguments(refusal: Refusal, project: Path, tmp_path: Path, nothing_runs: None) -> None:
    save("One")
    save("Two", turns=2)
    given = ("history", "mine.cu", *BRIEFLY)
    assert "work.h: this command reads" in refusal(*given, "--resume", "work.h")
    same = ("--picture", "a.svg", "--resume", "a.svg")
    assert "this command reads or writes" in refusal(*given, *same)
    Path("notes.jsonl").write_text("notes\n")
    assert "notes.jsonl:1: not a record" in refusal(*given, "--resume", "notes.jsonl")


@pytest.mark.long
def test_ctrl_c_keeps_what_is_done(project: Path, tmp_path: Path) -> None:
    """The last version never ends; the table shows the others, and the file has them."""
    first = save("First")
    second = save("Second", turns=2)
    save("Third", body=SPIN_BODY)
    file = tmp_path / "kept.jsonl"
    session = on_terminal(
        "history", "mine.cu", *BRIEFLY, "--resume", file, width=80,
        interrupt_when=lambda written: "running    checking mine@" in written
        and "comparison" in file.read_text(),
    )  # fmt: skip
    assert session.code == 130
    assert "Traceback" not in session.written
    assert "interrupted: 2 of 3 versions are done" in session.written
    assert first in session.written
    assert second in session.written
    assert kept(file)[-1] == "comparison"
    assert all(isinstance(outcome, Outcome) for outcome in Contents(file).outcomes)


def test_parameters_are_the_fastest(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    """Each version with its own: of TILE = 4 and 8 the second one prefers one by far."""
    save("First", body=changed(BODY, ("TAKES TURNS", "TAKES (1 + 20 * (TILE == 4))")))
    Path("mine.cu").write_text(Path("mine.cu").read_text().replace("[8]", "[4, 8]"))
    git(Path(), "commit", "-q", "-a", "--amend", "-m", "First")
    Path("mine.cu").write_text(Path("mine.cu").read_text().replace("TILE == 4", "TILE == 8"))
    file = tmp_path / "kept.jsonl"
    result = matbench("history", "mine.cu", *BRIEFLY, *MARGIN, "--resume", file)
    assert "No commit is shown" in result.stdout
    [record] = [f for f, _ in Contents(file).findings if isinstance(f, ComparisonRecord)]
    assert (record.baseline.case.params, record.candidate.case.params) == (
        {"TILE": 8}, {"TILE": 4},
    )  # fmt: skip
    before = kept(file)
    matbench("history", "mine.cu", *BRIEFLY, *MARGIN, "--resume", file)
    assert kept(file) == before
