"""The project's revision, as git reports it; nothing that the folder configures is run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import drivers, repository
from support.repository import git

from matbench.programs import git_commit as commit_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def committed(folder: Path, **files: str) -> str:
    """The commit of a new repository with these files; `_txt` stands for `.txt`."""
    git(folder, "init", "-q", "-b", "main", ".")
    return repository.commit(folder, **files)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with no repository in or above it."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return folder


def test_the_commit_of_the_current_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit_of("HEAD") is None
    git(project, "init", "-q", ".")
    assert commit_of("HEAD") is None
    commit = committed(project, a_txt="1\n")
    (project / "folder").mkdir()
    monkeypatch.chdir(project / "folder")
    assert commit_of("HEAD") == commit
    (project / "a.txt").write_text("modified\n")
    assert commit_of("HEAD") == commit
    monkeypatch.setenv("PATH", "")
    assert commit_of("HEAD") is None


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
    assert commit_of("HEAD") == commit
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    monkeypatch.chdir(project / "sub")
    assert commit_of("HEAD") == inner_commit
    monkeypatch.chdir(tmp_path / "tree")
    assert commit_of("HEAD") == commit


# Hostile folders


def attribute(folder: Path, names: str = "filter") -> None:
    info = folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    told = " ".join(f"{name}=evil" for name in names.split())
    (info / "attributes").write_text(f"*.txt {told}\n")


#: Settings that name a program, or an alias for it.
NAMING = """filter.evil.clean filter.evil.smudge filter.evil.process core.fsmonitor
diff.evil.textconv diff.evil.command diff.external merge.evil.driver core.pager
pager.rev-parse pager.ls-files pager.ls-tree pager.check-attr core.editor
core.askPass core.sshCommand core.gitProxy gpg.program credential.helper
alias.rev-parse alias.ls-files alias.ls-tree alias.describe"""


def settings(folder: Path, evil: Path) -> None:
    attribute(folder, "filter diff merge")
    for name in NAMING.split():
        git(folder, "config", name, f"{'!' * name.startswith('alias')}{evil}")
    git(folder, "config", "filter.evil.required", "true")
    git(folder, "config", "core.hooksPath", "../hooks")


def included(folder: Path, evil: Path) -> None:
    """A clean filter from a file that the configuration includes."""
    attribute(folder)
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
    """A commit whose files are on another host, reached through a program."""
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
    "settings": settings,
    "included": included,
    "committed attributes": committed_attributes,
    "hooks": hooks,
    "lazy fetch": lazily_fetched,
}


@pytest.mark.parametrize("set_up", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_a_folder_configures_is_run(
    set_up: Callable[[Path, Path], None], project: Path, tmp_path: Path
) -> None:
    committed(project, a_txt="1\n", b_txt="2\n")
    pwned, evil = tmp_path / "PWNED", tmp_path / "evil"
    drivers.program(evil, f"touch {pwned}\ncat")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "post-index-change").symlink_to(evil)
    (project / "a.txt").write_text("changed\n")
    set_up(project, evil)
    commit = (project / ".git" / "refs" / "heads" / "main").read_text().strip()
    (project / ".git" / "index").touch()
    pwned.unlink(missing_ok=True)
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*")}
    found = commit_of("HEAD")
    assert not pwned.exists()
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*")} == before
    assert found == commit


@pytest.mark.parametrize("folders", [".", "", "bin", "{good}:."])
def test_git_is_not_taken_from_the_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: str
) -> None:
    assert shutil.which("git") is not None
    committed(project, a_txt="1\n")
    for place in (project / "git", project / "bin" / "git"):
        drivers.program(place, f"touch {tmp_path / 'PWNED'}")
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("PATH", folders.format(good=tmp_path / "none"))
    assert commit_of("HEAD") is None
    assert not (tmp_path / "PWNED").exists()


def test_variables_of_git_name_no_other_repository_and_no_program(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    committed(other, o_txt="other\n")
    commit = committed(project, a_txt="1\n")
    evil = f"touch {tmp_path / 'PWNED'}"
    attribute(project)
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
    assert commit_of("HEAD") == commit
    assert not (tmp_path / "PWNED").exists()


def test_what_only_resembles_a_bare_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed(project, a_txt="1\n")
    git(project, "clone", "-q", "--bare", ".", "looks")
    monkeypatch.chdir(project / "looks")
    assert commit_of("HEAD") is None


def test_git_hangs(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin"
    drivers.program(slow / "git", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    monkeypatch.setattr("matbench.programs._TIMEOUT_S", 0.2)
    started = time.monotonic()
    assert commit_of("HEAD") is None
    assert time.monotonic() - started < 5
