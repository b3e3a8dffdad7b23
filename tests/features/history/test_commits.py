"""Which versions of a kernel file git has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import drivers
from support.kernels import GOOD_BODY, kernel_text
from support.optional import present
from support.repository import commit, git

from matbench.features.history.commits import CommittedVersion, versions
from matbench.kernelfile import catalogue

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def listed(
    project: Path, name: str = "mine.cu", *, since: str | None = None, given: str = ""
) -> list[CommittedVersion]:
    table = {"include_dirs": [given]} if given else {}
    folder = project.parent / f"old{len(list(project.parent.iterdir()))}"
    kernel = catalogue.load(project / name, given=table)
    return versions(kernel, table, since, folder)


def shown(found: list[CommittedVersion]) -> list[tuple[str, str]]:
    return [(version.commit, version.subject) for version in found]


def save(project: Path, subject: str, **files: str) -> str:
    commit(project, **files)
    git(project, "commit", "-q", "--amend", "-m", subject)
    return git(project, "rev-parse", "--short", "HEAD")


def test_each_commit_that_changed_a_file_of_the_kernel(project: Path) -> None:
    """Its headers, those of its headers, and its table; a header that only an older version
    includes too."""
    source = '#include "a.h"\n' + GOOD_BODY.replace("ENTRY", "mine")
    table = 'name = "mine"\n[sweep]\nTILE = [{}]\n[launch]\nblock = ["TILE", "TILE"]\n'
    table += 'grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]\n'
    commits = [
        save(project, "one", mine_cu=source, mine_toml=table.format(4),
             a_h='#include "b.h"\n', b_h="#define X 1\n", other_h="1", c_h="1"),
        save(project, "two", b_h="#define X 2\n"),
        save(project, "not ours", other_h="2", readme_txt="x"),
        save(project, "three", mine_toml=table.format(8)),
        save(project, "four", mine_cu=source.replace("a.h", "c.h")),
        save(project, "not any more", b_h="#define X 3\n"),
        save(project, "five", c_h="// 2\n"),
    ]  # fmt: skip
    found = listed(project)
    ours = {0: "one", 1: "two", 3: "three", 4: "four", 5: "not any more", 6: "five"}
    assert shown(found) == [(commits[index], subject) for index, subject in ours.items()]
    assert [version.kernel.sweep["TILE"] for version in found] == [(4,), (4,), *[(8,)] * 4]
    assert found[3].code == found[4].code  # c.h is not what it was, but b.h is no part of it
    assert len({version.code for version in found}) == 5
    assert all(version.date == git(project, "log", "-1", "--format=%cs") for version in found)
    assert found[0].label == f"mine@{commits[0]}"


def test_a_header_that_was_added_later_where_the_kernel_looks_first(project: Path) -> None:
    body = '#include "own.h"\n' + GOOD_BODY
    save(project, "one", kernels__mine_cu=kernel_text("mine", body=body), headers__own_h="// 1\n")
    second = save(project, "two", kernels__own_h="#define NEARER\n")
    found = listed(project, "kernels/mine.cu", given=str(project / "headers"))
    assert [version.subject for version in found] == ["one", "two"]
    assert found[1].commit == second
    assert found[0].code != found[1].code


def test_what_is_not_committed_is_the_last(project: Path) -> None:
    save(project, "one", mine_cu=kernel_text())
    (project / "mine.cu").write_text(kernel_text() + "extern int unused;\n")
    now = listed(project)[-1]
    assert (now.commit, now.date, now.subject) == ("now", "", "not committed")
    assert now.label == "mine"
    git(project, "commit", "-qam", "two")
    assert [version.subject for version in listed(project)] == ["one", "two"]


def test_a_merge_is_one_change(project: Path) -> None:
    """As they came to this branch; without a second parent's own versions."""
    save(project, "one", mine_cu=kernel_text())
    git(project, "checkout", "-qb", "side")
    for i in range(2):
        save(project, f"side {i}", mine_cu=kernel_text() + f"extern int a{i};\n")
    git(project, "checkout", "-q", "main")
    save(project, "elsewhere", other_txt="x")
    git(project, "merge", "-q", "--no-ff", "-m", "merged", "side")
    assert [version.subject for version in listed(project)] == ["one", "merged"]
    assert [v.subject for v in listed(project, since="side~1")] == ["side 0", "merged"]


def test_a_file_that_was_gone_for_a_while(project: Path) -> None:
    save(project, "one", mine_cu=kernel_text())
    git(project, "rm", "-q", "mine.cu")
    git(project, "commit", "-qm", "removed")
    save(project, "back", mine_cu=kernel_text() + "extern int unused;\n")
    assert [version.subject for version in listed(project)] == ["one", "back"]


def test_a_file_that_is_no_longer_committed(project: Path) -> None:
    save(project, "one", mine_cu=kernel_text())
    save(project, "two", mine_cu=kernel_text() + "extern int unused;\n")
    git(project, "rm", "-q", "--cached", "mine.cu")
    git(project, "commit", "-qm", "removed")
    assert [version.subject for version in listed(project)] == ["one", "two"]


def test_names_and_subjects_of_all_kinds(project: Path) -> None:
    """A name is no pattern, and a subject may hold anything but a newline."""
    (project / ":(glob)*").mkdir()
    path = project / ":(glob)*" / "mine.cu"
    for text, subject in (("", "tab\there"), ("extern int a;\n", "\x1b[31mred\x07 – ü")):
        path.write_text(kernel_text() + text)
        save(project, subject)
    (project / "x").mkdir()
    (project / "x" / "mine.cu").write_text("a pattern would mean this one as well")
    save(project, "not ours")
    subjects = [version.subject for version in listed(project, ":(glob)*/mine.cu")]
    assert subjects == ["tab\there", "\x1b[31mred\x07 – ü"]


def test_what_cannot_be_compared_has_a_reason(project: Path) -> None:
    save(project, "unreadable", mine_cu="// /// matbench\n// name = \n// ///\n")
    half = kernel_text().replace(
        "const float *A, const float *B", "const __half *A, const __half *B"
    )
    save(project, "half", mine_cu=half)
    save(project, "one", mine_cu=kernel_text())
    unreadable, other, one = listed(project)
    assert unreadable.kernel.never is not None
    assert "not TOML" in unreadable.kernel.never.needs
    assert str(project) not in unreadable.kernel.never.needs
    assert other.kernel.never is not None
    assert one.kernel.never is None
    assert len({unreadable.code, other.code, one.code}) == 3


def test_nothing_is_checked_out_nor_configured_run(project: Path, tmp_path: Path) -> None:
    ran = tmp_path / "RAN"
    program = drivers.program(tmp_path / "program", f"touch {ran}\ncat")
    save(project, "one", mine_cu=kernel_text())
    save(project, "two", mine_cu=kernel_text() + "extern int a;\n")
    (project / ".gitattributes").write_text("*.cu filter=evil diff=evil\n")
    for key in ("filter.evil.smudge", "diff.evil.textconv", "gpg.program", "core.pager"):
        git(project, "config", key, str(program))
    git(project, "config", "log.showSignature", "true")
    before = git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")
    ran.unlink(missing_ok=True)
    assert len(listed(project)) == 2
    assert not ran.exists()
    assert before == (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD"))


def test_a_damaged_object_is_a_version_with_a_reason(project: Path) -> None:
    for value in "123":
        save(project, value, mine_cu=f"{kernel_text('mine')}constant int x = {value};\n")
    sha = git(project, "rev-parse", "HEAD~1:mine.cu")
    (project / ".git" / "objects" / sha[:2] / sha[2:]).unlink()
    before, damaged, after = (version.kernel.never for version in listed(project))
    assert (before, after) == (None, None)
    assert "mine.cu: cannot be read from git at" in present(damaged).needs
