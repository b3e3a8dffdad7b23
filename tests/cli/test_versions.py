"""Kernel files as of a git revision: `mine.cu@main`, and `compare --against main`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import Matbench, Refusal
from support.kernels import GOOD_BODY, SLOW_BODY, kernel_text, own_file, text_of
from support.repository import commit, git, tree

pytestmark = [
    pytest.mark.usefixtures("own_state", "scripted_device"),
    pytest.mark.skipif(shutil.which("git") is None, reason="no git"),
]

#: For tests that ignore the verdict, and for those of two versions that differ by far.
BRIEFLY = ("--sizes", "33", "--max-time", "0.05")
LONG = ("--sizes", "64")
#: 20 times slower than `kernel_text()`.
SLOW = kernel_text("mine", body=SLOW_BODY)


@pytest.fixture
def project(temporary: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, as the working folder; `mine.cu` is committed, and slower now."""
    monkeypatch.chdir(project)
    commit(project, mine_cu=kernel_text())
    Path("mine.cu").write_text(SLOW)
    return project


def left(tmp_path: Path) -> list[Path]:
    """The temporary folders that a command should have removed."""
    return list((tmp_path / "temporary").glob("matbench-*"))


def records(text: str) -> list[dict[str, Any]]:
    environment, *found = json.loads(text)
    assert environment["type"] == "environment"
    return list(found)


def test_a_slower_kernel_fails(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    arguments = ("compare", "--against", "main", "mine.cu", *LONG, "--format", "json")
    [record] = records(matbench(*arguments, "--fail-if-slower", "5%", code=1).stdout)
    assert (record["baseline_name"], record["candidate_name"]) == ("mine@main", "mine")
    assert record["comparison"]["verdict"] == "SLOWER"
    assert left(tmp_path) == []
    commit(Path())
    Path("mine.cu").write_text(kernel_text())
    [record] = records(matbench(*arguments, "--fail-if-slower", "5%").stdout)
    assert record["comparison"]["verdict"] == "FASTER"


def test_a_version_is_named_like_a_file(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    """In any command; each row says which version it is of."""
    git(Path(), "tag", "a@b/v1.0")
    arguments = ("mine.cu@a@b/v1.0", "mine.cu", *BRIEFLY, "--format", "json")
    [record] = records(matbench("compare", *arguments).stdout)
    assert (record["baseline_name"], record["candidate_name"]) == ("mine@a@b/v1.0", "mine")
    rows = records(matbench("run", *arguments).stdout)
    assert [row["case"]["kernel"] for row in rows] == ["mine@a@b/v1.0", "mine"]
    assert {row["status"] for row in rows} == {"measured"}
    assert rows[0]["case"]["sha256"] != rows[1]["case"]["sha256"]
    assert "volatile" not in matbench("kernels", "mine.cu@HEAD^{/a}").stdout  # as it is now
    assert left(tmp_path) == []


CPP = text_of("times-k.cpp")
PYTHON = "from other import k\ndef g(A, B): return k * (A @ B)\n"


@pytest.mark.real
@pytest.mark.parametrize(
    ("file", "text", "beside", "line", "given"),
    [
        ("f.py{}::g", PYTHON, "other.py", "k = {}", ()),
        ("f.cpp{}", CPP, "k.h", "const float k = {};", ("--entry", "host g")),
    ],
)
def test_a_function_has_the_modules_and_headers_of_its_revision(
    file: str, text: str, beside: str, line: str, given: tuple[str, ...], matbench: Matbench,
    project: Path,
) -> None:  # fmt: skip
    path, _, _ = file.partition("{")
    Path(path).write_text(text)
    Path(beside).write_text(line.format(1) + "\n")
    commit(Path())
    Path(beside).write_text(line.format(2) + "\n")
    options = (*given, *BRIEFLY, "--format", "json")
    names = file.format("@HEAD"), file.format("")
    for arguments in (names, ("--against", "HEAD", names[1])):
        [record] = records(matbench("compare", *arguments, *options, code=1).stdout)
        sides = record["baseline"], record["candidate"]
        assert [side["status"] for side in sides] == ["measured", "wrong"]
        assert record["baseline_name"] == f"{record['candidate_name']}@HEAD"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mine.cu@nowhere", "mine.cu@nowhere: no such revision; in CI, fetch it first "
         "(`fetch-depth: 0` in actions/checkout)"),
        ("new.cu@main", "new.cu@main: that revision does not have the file"),
        ("../mine.cu@main", "../mine.cu: its versions need git, and a working tree around it"),
    ],
)  # fmt: skip
def test_what_is_no_version_is_refused(
    name: str, told: str, refusal: Refusal, project: Path, nothing_runs: None
) -> None:
    assert refusal("run", name) == told
    told = refusal("history", "mine.cu@main")
    assert told == "mine.cu@main: is of a revision already; name the file"
    told = refusal("tune", "mine.cu@main", "--sizes", "33", "--write")
    assert told == "--write: mine.cu@main is of a revision; name the file"


def test_what_did_not_change_or_is_new_is_not_measured(
    matbench: Matbench, project: Path, tmp_path: Path, nothing_runs: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    Path("mine.cu").write_text(kernel_text())
    Path("other.cu").write_text(kernel_text("other"))
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = matbench("compare", "--against", "HEAD", "mine.cu", "other.cu", *BRIEFLY,
                      "--fail-if-slower", "3%", "--set", "TILE=8")  # fmt: skip
    remarks = ["mine: unchanged since HEAD, not compared", "other: new since HEAD, not compared"]
    assert result.stderr.splitlines() == remarks
    assert "nothing to compare" in result.stdout
    text = summary.read_text()
    assert text.startswith("### Nothing to compare\n")
    for remark in remarks:
        assert f"- {remark}" in text
    assert left(tmp_path) == []


def test_what_was_wrong_before_may_be_right_now(matbench: Matbench, project: Path) -> None:
    """Here because of a header."""
    headed = kernel_text("mine", body='#include "factor.h"\n' + GOOD_BODY)
    commit(Path(), mine_cu=headed, factor_h="#define WRONG 1\n", right_cu=kernel_text("right"))
    Path("factor.h").write_text("#define WRONG 0\n")
    Path("right.cu").write_text(kernel_text("right") + "extern int changed;\n")
    given = (*BRIEFLY, "--fail-if-slower", "900%", "--allow-skips", "--format", "json")
    arguments = ("compare", "--against", "HEAD", "mine.cu", "right.cu", *given)
    mine, right = records(matbench(*arguments).stdout)
    assert mine["baseline"]["status"] == "wrong"
    assert mine["candidate"]["status"] != "wrong"
    assert right["comparison"] is not None


def test_a_version_with_another_type_has_no_verdict(matbench: Matbench, project: Path) -> None:
    Path("mine.cu").write_text(kernel_text().replace("float *C", "double *C"))
    arguments = ("compare", "--against", "main", "mine.cu", *BRIEFLY, "--format", "json")
    [record] = records(matbench(*arguments, code=None).stdout)
    assert record["comparison"] is None
    assert "their results differ: float32 and float64" in record["candidate"]["reason"]


def test_several_kernels_and_workloads(matbench: Matbench, project: Path, tmp_path: Path) -> None:
    """Each at the sizes of its own workload; those of the same name by their paths."""
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "mine.cu").write_text(kernel_text())
    dot = own_file("dot-tree")
    Path("dots.cu").write_text(dot.read_text().replace('name = "dot-tree"', 'name = "dots"'))
    commit(Path())
    for path in ("a/mine.cu", "b/mine.cu", "dots.cu"):
        with Path(path).open("a") as file:
            file.write("extern int changed;\n")
    result = matbench("compare", "--against", "HEAD", "a/mine.cu", "b/mine.cu", "dots.cu",
                      "--sizes", "64", "--max-time", "0.05", "--format", "json")  # fmt: skip
    found = records(result.stdout)
    assert [(one["baseline_name"], one["candidate_name"]) for one in found] == [
        ("a/mine.cu@HEAD", "a/mine.cu"), ("b/mine.cu@HEAD", "b/mine.cu"),
        ("dots@HEAD", "dots"),
    ]  # fmt: skip
    workloads = [one["candidate"]["case"]["problem"]["workload"] for one in found]
    assert workloads == ["matmul", "matmul", "dot"]
    assert left(tmp_path) == []


def test_without_git_or_a_repository_it_is_refused(
    refusal: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    Path("mine.cu").write_text(kernel_text())
    needed = "mine.cu: its versions need git, and a working tree around it"
    assert refusal("compare", "--against", "HEAD", "mine.cu") == needed
    git(Path(), "init", "-q", ".")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal("compare", "--against", "HEAD", "mine.cu") == needed


def test_a_tree_that_leads_out_of_its_folder_is_refused(
    matbench: Matbench, project: Path, tmp_path: Path, nothing_runs: None
) -> None:
    """Files are written to `temporary/matbench-git-*/0/kernels/`: four folders up is `tmp_path`."""
    Path("kernels").mkdir()
    Path("kernels/mine.cu").write_text(kernel_text("mine", body="#include MACRO\n" + GOOD_BODY))
    source = git(project, "hash-object", "-w", "kernels/mine.cu")
    inner = tree(project, ("100644", "escaped.h", source))
    for _ in range(3):
        inner = tree(project, ("40000", "..", inner))
    kernels = tree(project, ("40000", "..", inner), ("100644", "mine.cu", source))
    root = tree(project, ("40000", "kernels", kernels))
    git(project, "update-ref", "HEAD", git(project, "commit-tree", "-m", "evil", root))
    commit(project, kernels__mine_cu=SLOW)
    arguments = ("compare", "--against", "HEAD~1", "kernels/mine.cu", *BRIEFLY)
    told = matbench(*arguments, code=2).stderr
    assert told.count("\n") == 1
    assert "escaped.h': leads out of the folder of its kernel's files" in told
    assert not (tmp_path / "escaped.h").exists()
    assert left(tmp_path) == []
