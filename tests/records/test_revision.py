"""The project's revision: told as git tells it, and nothing that the folder configures is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from matbench.records.revision import project_revision

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always",
         *words], cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def committed(folder: Path, **files: str) -> str:
    """The commit of a new repository with these files; `_txt` stands for `.txt`."""
    git(folder, "init", "-q", "-b", "main", ".")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with no repository in or above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return folder


def test_a_commit_is_told_and_what_was_modified_since(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_revision() is None
    git(project, "init", "-q", ".")
    assert project_revision() is None
    commit = committed(project, a_txt="1\n", b_txt="2\n")
    (project / "folder").mkdir()
    assert project_revision() == commit
    (project / "untracked").write_text("of no account")
    assert project_revision() == commit
    monkeypatch.chdir(project / "folder")
    assert project_revision() == commit
    (project / "a.txt").write_text("3\n")
    assert project_revision() == f"{commit}-dirty"
    git(project, "add", "a.txt")
    assert project_revision() == f"{commit}-dirty"
    monkeypatch.setenv("PATH", "")
    assert project_revision() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.txt").unlink(),
        lambda folder: ((folder / "a.txt").unlink(), (folder / "a.txt").mkdir()),
        lambda folder: ((folder / "a.txt").unlink(), os.mkfifo(folder / "a.txt")),
        lambda folder: ((folder / "a.txt").unlink(), (folder / "a.txt").symlink_to("/dev/zero")),
        lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("elsewhere")),
        lambda folder: git(folder, "rm", "-q", "--cached", "a.txt"),
        lambda folder: ((folder / "new").touch(), git(folder, "add", "new")),
    ],
    ids=["removed", "folder", "pipe", "device", "link", "unstaged", "added"],
)
def test_every_change_counts(project: Path, change: Callable[[Path], object]) -> None:
    (project / "link").symlink_to("a.txt")
    commit = committed(project, a_txt="1\n")
    assert project_revision() == commit
    change(project)
    assert project_revision() == f"{commit}-dirty"


def test_line_ends_of_another_system_are_no_change(project: Path) -> None:
    commit = committed(project, a_txt="1\n2\n")
    (project / "a.txt").write_bytes(b"1\r\n2\r\n")
    assert project_revision() == commit


def test_a_sparse_checkout_is_not_modified(project: Path) -> None:
    (project / "folder").mkdir()
    (project / "folder" / "b.txt").write_text("2\n")
    commit = committed(project, a_txt="1\n")
    git(project, "sparse-checkout", "set", "elsewhere")
    assert not (project / "folder" / "b.txt").exists()
    assert project_revision() == commit


def test_names_of_any_kind_are_compared(project: Path) -> None:
    names = ["größer.txt", "a\nb", "a\tb", '"quoted"', os.fsdecode(b"\xff")]
    for name in names:
        (project / name).write_text("1\n")
    commit = committed(project)
    assert project_revision() == commit
    (project / names[-1]).write_text("2\n")
    assert project_revision() == f"{commit}-dirty"


def test_a_submodule_and_a_worktree_have_their_own_revision(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    inner_commit = committed(inner, i_txt="1\n")
    committed(project, a_txt="1\n")
    git(project, "submodule", "add", "-q", str(inner), "sub")
    git(project, "commit", "-q", "-m", "sub")
    commit = git(project, "rev-parse", "HEAD")
    assert project_revision() == commit
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    monkeypatch.chdir(project / "sub")
    assert project_revision() == inner_commit
    monkeypatch.chdir(tmp_path / "tree")
    assert project_revision() == commit


# Hostile folders


def attribute(folder: Path, name: str) -> None:
    info = folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(f"*.txt {name}=evil\n")


def configured(*settings: str, attributes: str | None = None) -> Callable[[Path, Path], None]:
    """Writes settings to the repository's configuration; `EVIL` stands for the program."""

    def set_up(folder: Path, evil: Path) -> None:
        if attributes:
            attribute(folder, attributes)
        for setting in settings:
            name, _, value = setting.partition(" ")
            git(folder, "config", name, value.replace("EVIL", str(evil)))

    return set_up


def included(folder: Path, evil: Path) -> None:
    """A clean filter from a file that the configuration includes."""
    attribute(folder, "filter")
    (folder / "more").write_text(f'[filter "evil"]\n\tclean = {evil}\n')
    git(folder, "config", "include.path", str(folder / "more"))


def committed_attributes(folder: Path, evil: Path) -> None:
    """A clean filter that a committed `.gitattributes` asks for."""
    (folder / ".gitattributes").write_text("*.txt filter=evil\n")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-q", "-m", "attributes")
    git(folder, "config", "filter.evil.clean", str(evil))


def hooks(folder: Path, evil: Path) -> None:
    for name in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction"):
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / name).symlink_to(evil)


def lazily_fetched(folder: Path, evil: Path) -> None:
    """A commit whose files are said to be on another host, reached through a program."""
    tree = git(folder, "rev-parse", "HEAD^{tree}")
    (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(folder),
        "remote.origin.uploadPack": str(evil),
    }.items():
        git(folder, "config", name, value)


HOSTILE = {
    "clean filter": configured("filter.evil.clean EVIL", attributes="filter"),
    "smudge filter": configured("filter.evil.smudge EVIL", attributes="filter"),
    "process filter": configured(
        "filter.evil.process EVIL", "filter.evil.required true", attributes="filter"
    ),
    "included": included,
    "committed attributes": committed_attributes,
    "fsmonitor": configured("core.fsmonitor EVIL"),
    "hooks": hooks,
    "hooks elsewhere": configured("core.hooksPath ../hooks"),
    "textconv": configured("diff.evil.textconv EVIL", attributes="diff"),
    "diff driver": configured("diff.evil.command EVIL", attributes="diff"),
    "external diff": configured("diff.external EVIL"),
    "merge driver": configured("merge.evil.driver EVIL", attributes="merge"),
    "pagers": configured(
        "core.pager EVIL", "pager.rev-parse EVIL", "pager.ls-files EVIL", "pager.ls-tree EVIL",
        "pager.check-attr EVIL",
    ),
    "aliases": configured(
        "alias.rev-parse !EVIL", "alias.ls-files !EVIL", "alias.ls-tree !EVIL",
        "alias.describe !EVIL",
    ),
    "editor, askpass, ssh, proxy": configured(
        "core.editor EVIL", "core.askPass EVIL", "core.sshCommand EVIL", "core.gitProxy EVIL",
        "gpg.program EVIL", "credential.helper EVIL",
    ),
    "lazy fetch": lazily_fetched,
}  # fmt: skip


@pytest.mark.parametrize("set_up", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("state", ["clean", "touched", "modified", "staged"])
def test_nothing_that_a_folder_configures_is_run(
    set_up: Callable[[Path, Path], None], state: str, project: Path, tmp_path: Path
) -> None:
    committed(project, a_txt="1\n", b_txt="2\n")
    pwned, evil = tmp_path / "PWNED", tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {pwned}\ncat\n")
    evil.chmod(0o755)
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "post-index-change").symlink_to(evil)
    if state in ("modified", "staged"):
        (project / "a.txt").write_text("changed\n")
    if state == "staged":
        git(project, "add", "a.txt")
    set_up(project, evil)
    commit = (project / ".git" / "refs" / "heads" / "main").read_text().strip()
    (project / ".git" / "index").touch()
    pwned.unlink(missing_ok=True)
    if state == "touched":
        later = time.time() + 100
        os.utime(project / "a.txt", (later, later))
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*")}
    found = project_revision()
    assert not pwned.exists()
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*")} == before
    assert found in (commit, f"{commit}-dirty")


def test_what_a_filter_would_make_of_a_file_is_not_known(project: Path) -> None:
    commit = committed(project, a_txt="1\n", b_bin="1\n")
    configured("filter.evil.clean false", attributes="filter")(project, Path("false"))
    (project / "a.txt").write_text("as the filter left it\n")
    assert project_revision() == commit
    (project / "b.bin").write_text("2\n")
    assert project_revision() == f"{commit}-dirty"


@pytest.mark.parametrize("folders", [".", "", "bin", "{good}:."])
def test_git_is_not_taken_from_the_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: str
) -> None:
    found = shutil.which("git")
    assert found is not None
    committed(project, a_txt="1\n")
    (project / "bin").mkdir()
    for place in (project / "git", project / "bin" / "git"):
        place.write_text(f"#!/bin/sh\ntouch {tmp_path / 'PWNED'}\n")
        place.chmod(0o755)
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("PATH", folders.format(good=tmp_path / "none"))
    assert project_revision() is None
    assert not (tmp_path / "PWNED").exists()


def test_variables_of_git_name_no_other_repository_and_no_program(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    committed(other, o_txt="other\n")
    commit = committed(project, a_txt="1\n")
    evil = f"touch {tmp_path / 'PWNED'}"
    attribute(project, "filter")
    for name, value in {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_EXTERNAL_DIFF": evil,
        "GIT_PAGER": evil,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "filter.evil.clean",
        "GIT_CONFIG_VALUE_0": evil,
    }.items():
        monkeypatch.setenv(name, value)
    assert project_revision() == commit
    assert not (tmp_path / "PWNED").exists()


def test_a_folder_that_looks_like_a_bare_repository_is_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(project, a_txt="1\n")
    git(project, "clone", "-q", "--bare", ".", "looks")
    monkeypatch.chdir(project / "looks")
    assert project_revision() is None


def test_another_work_tree_is_compared_without_leaving_it(project: Path, tmp_path: Path) -> None:
    commit = committed(project, a_txt="1\n")
    git(project, "config", "core.worktree", str(tmp_path))
    found = project_revision()
    assert found is None or found.startswith(commit)


def test_files_that_are_too_much_to_compare_are_not_said_to_be_modified(project: Path) -> None:
    commit = committed(project, a_txt="1\n")
    with (project / "a.txt").open("r+b") as file:
        file.truncate(2**40)
    started = time.monotonic()
    assert project_revision() == commit
    assert time.monotonic() - started < 5


def test_a_git_that_hangs_is_left(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    monkeypatch.setattr("matbench.records.revision._TIMEOUT_S", 0.2)
    started = time.monotonic()
    assert project_revision() is None
    assert time.monotonic() - started < 5
