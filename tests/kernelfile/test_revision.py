"""A kernel file as of a git revision: its text, table and headers; nothing configured is run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import Noted
from support.golden import TableRegression
from support.kernels import GOOD_BODY, kernel_text, saved
from support.optional import present
from support.repository import commit, git

from matbench import programs
from matbench.errors import UsageError
from matbench.kernelfile import catalogue, includes, revision
from matbench.kernelfile.includes import code_of
from matbench.kernelfile.revision import Version
from matbench.model import Kernel

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def including(*names: str) -> str:
    lines = "".join(f"#include {name}\n" for name in names)
    return kernel_text("mine", body=lines + GOOD_BODY)


def extracted(
    path: Path, asked: str, folder: Path, given: dict[str, Any] | None = None
) -> Kernel | None:
    """The kernel as of then."""
    version = Version(str(path), path, asked)
    root, name = revision.place(version)
    sha = revision.commit(str(version), asked, root)
    found = revision.take(version, root, name, sha, folder, given or {})
    return catalogue.load(found.path, found.shown, found.given) if found else None


def is_same(old: Kernel, path: Path, given: dict[str, Any] | None = None) -> bool:
    return code_of(old) == code_of(catalogue.load(path, given=given))


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_the_first_at_after_a_suffix_divides(table_regression: TableRegression) -> None:
    def meant(name: str) -> str:
        found = revision.named(name)
        assert found is None or str(found) == name
        return str(found and (found.shown, found.revision, found.function))

    table_regression("versions.txt", meant)


def test_a_path_that_is_there_is_no_version(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    for name in ("mine.cu@v1", "f.py@v1.py"):
        Path(name).write_text("")
        assert revision.named(name) is None
    assert revision.named("f.py@v1.py::g") is None


def test_the_file_as_of_then(project: Path, tmp_path: Path) -> None:
    old = commit(project, kernels__mine_cu=kernel_text())
    new = commit(project, kernels__mine_cu=kernel_text() + "// changed\n")
    path = saved(project / "kernels" / "mine.cu", kernel_text() + "// changed again\n")
    for number, (asked, ending) in enumerate(
        {old: "}\n", "HEAD~1": "}\n", new: "// changed\n", "main": "// changed\n"}.items()
    ):
        found = present(extracted(path, asked, tmp_path / str(number)))
        assert found.source.endswith(ending)
        assert names(tmp_path / str(number)) == ["kernels/mine.cu"]
    assert path.read_text().endswith("// changed again\n")  # nothing here is touched
    assert git(project, "status", "--porcelain") == "M kernels/mine.cu"


def test_a_file_that_is_gone_with_its_folder(project: Path, tmp_path: Path) -> None:
    commit(project, a__b__mine_cu=kernel_text())
    shutil.rmtree(project / "a")
    assert extracted(project / "a" / "b" / "mine.cu", "HEAD", tmp_path / "old") is not None


def test_the_table_beside_it_is_that_of_then(project: Path, tmp_path: Path) -> None:
    front = 'name = "mine"\n[sweep]\nTILE = [{}]\n[launch]\nblock = ["TILE", "TILE"]\n'
    front += 'grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]\n'
    body = GOOD_BODY.replace("ENTRY", "mine")
    commit(project, mine_cu=body, mine_toml=front.format("4"))
    (project / "mine.toml").write_text(front.format("8"))
    found = present(extracted(project / "mine.cu", "HEAD", tmp_path / "old"))
    assert found.sweep == {"TILE": (4,)}
    assert not is_same(found, project / "mine.cu")
    (project / "mine.toml").write_text(front.format("4"))
    assert is_same(found, project / "mine.cu")


def test_a_revision_is_no_part_of_the_file_s_name(project: Path, tmp_path: Path) -> None:
    """Its kernel is named after it, and its suffix says what it is."""
    ptx = ".version 8.0\n.target sm_80\n.entry g(.param .u64 a, .param .u64 b, .param .u64 c)\n{}\n"
    table = 'args = ["A", "B", "C"]\n[launch]\nblock = [1]\ngrid = [1]\n'
    commit(project, x_ptx=ptx, x_toml=table, y_cubin=b"\xff", z_cu=kernel_text(),
           bad_cu=GOOD_BODY.replace("ENTRY", "bad"), bad_toml="nmae = 1\n")  # fmt: skip
    git(project, "tag", "v1.0")
    found = present(extracted(project / "x.ptx", "v1.0", tmp_path / "x"))
    assert (found.name, found.entry, found.path) == ("x.ptx", "g", f"{project / 'x.ptx'}@v1.0")
    with pytest.raises(UsageError, match=r"y\.cubin@v1\.0: not a cubin"):
        extracted(project / "y.cubin", "v1.0", tmp_path / "y")
    with pytest.raises(UsageError, match=r"/bad\.cu@v1\.0:1: unknown key `nmae`"):
        extracted(project / "bad.cu", "v1.0", tmp_path / "bad")


def test_a_macro_does_not_take_any_number_of_files(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(project, mine_cu=including("MACRO"), a_h="", b_h="", c_h="")
    monkeypatch.setattr(includes, "MAX_FILES", 3)
    with pytest.raises(UsageError, match="one of more than 3 included files"):
        extracted(project / "mine.cu", "HEAD", tmp_path / "old")
    assert len(names(tmp_path / "old")) == 3


HEADER = "#pragma once\n#define FACTOR {}\n"


@pytest.mark.parametrize(
    ("include", "header", "given"),
    [
        ('"own.h"', "kernels/own.h", None),
        ('"inner/own.h"', "kernels/inner/own.h", None),
        ('"../own.h"', "own.h", None),
        ("<own.h>", "headers/own.h", "headers"),
        ('"own.h"', "kernels/deep/own.h", "kernels/deep"),
        ('FILE_TO_INCLUDE\n#define FILE_TO_INCLUDE "own.h"', "kernels/own.h", None),
    ],
)
def test_headers_are_those_of_then(
    include: str, header: str, given: str | None, project: Path, tmp_path: Path
) -> None:
    commit(project, kernels__mine_cu=including(include), **{header: HEADER.format(1)})
    path = project / header.replace("_", ".")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER.format(1))
    git(project, "add", "-A")
    git(project, "commit", "-q", "--amend", "-m", "a")
    path.write_text(HEADER.format(2))
    options = {"include_dirs": [str(project / given)]} if given else {}
    file = project / "kernels" / "mine.cu"
    found = present(extracted(file, "HEAD", tmp_path / "old", options))
    [then] = found.includes
    assert Path(then.path).is_relative_to(tmp_path / "old")
    assert Path(then.path).read_text() == HEADER.format(1)
    # The control: a change of the header alone is a change of the kernel, and none is none.
    assert not is_same(found, file, options)
    path.write_text(HEADER.format(1))
    assert is_same(found, file, options)


def test_headers_in_folders_of_its_front_matter(project: Path, tmp_path: Path) -> None:
    body = "#include <own.h>\n#include <other.h>\n" + GOOD_BODY
    text = kernel_text("mine", front='include_dirs = ["../headers", "../more"]', body=body)
    commit(project, kernels__mine_cu=text, headers__own_h=HEADER.format(1),
           headers__other_h="", more__unused_h="")  # fmt: skip
    (project / "headers" / "own.h").write_text(HEADER.format(2))
    found = present(extracted(project / "kernels" / "mine.cu", "HEAD", tmp_path / "old"))
    assert {Path(each.path).read_text() for each in found.includes} == {HEADER.format(1), ""}
    assert names(tmp_path / "old") == ["headers/other.h", "headers/own.h", "kernels/mine.cu"]


@pytest.mark.parametrize("name", ["../../outside.h", "/etc/passwd", "..", "a/../../../x.h"])
def test_nothing_is_written_outside_of_the_folder(name: str, project: Path, tmp_path: Path) -> None:
    commit(project, kernels__mine_cu=including(f'"{name}"'))
    (tmp_path / "outside.h").write_text("")
    assert extracted(project / "kernels" / "mine.cu", "HEAD", tmp_path / "a" / "b")
    assert names(tmp_path / "a") == ["b/kernels/mine.cu"]


def test_a_header_that_is_too_large_is_refused_before_it_is_read(
    project: Path, tmp_path: Path, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(project, mine_cu=including('"x.h"'), x_h="//" + 2000 * "x")
    (project / "x.h").write_text("// small again")
    monkeypatch.setattr(includes, "MAX_FILE_BYTES", 2002)
    assert extracted(project / "mine.cu", "HEAD", tmp_path / "fits")
    taken = noted(programs, "git")
    monkeypatch.setattr(includes, "MAX_FILE_BYTES", 2001)
    with pytest.raises(UsageError, match=r"x\.h: larger than 2,001 bytes in git at [0-9a-f]{12}"):
        extracted(project / "mine.cu", "HEAD", tmp_path / "old")
    assert not any("blob" in words and words[-1].endswith(":x.h") for words in taken)


def test_line_endings_are_those_in_git(project: Path, tmp_path: Path) -> None:
    """A checkout with other line endings is no change of the kernel."""
    commit(project, _gitattributes="*.cu text eol=crlf\n", mine_cu=kernel_text())
    path = project / "mine.cu"
    path.unlink()
    git(project, "checkout", "-q", ".")
    assert b"\r\n" in path.read_bytes()
    found = present(extracted(path, "HEAD", tmp_path / "old"))
    assert b"\r\n" not in (tmp_path / "old" / "mine.cu").read_bytes()
    assert is_same(found, path)


def test_links_and_submodules_are_not_followed(project: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("secret")
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main", ".")
    commit(inner, sub_h="")
    (project / "link.h").symlink_to(secret)
    git(project, "submodule", "add", "-q", str(inner), "inner")
    commit(project, mine_cu=including('"link.h"', '"inner/sub.h"'))
    path = project / "mine.cu"
    assert extracted(path, "HEAD", tmp_path / "old")
    assert names(tmp_path / "old") == ["mine.cu"]
    assert not any(each.is_symlink() for each in (tmp_path / "old").rglob("*"))


def test_a_file_that_is_a_link_is_what_it_leads_to(project: Path, tmp_path: Path) -> None:
    commit(project, real_cu=kernel_text())
    link = tmp_path / "link.cu"
    link.symlink_to(project / "real.cu")
    assert extracted(link, "HEAD", tmp_path / "old") is not None
    assert names(tmp_path / "old") == ["real.cu"]


@pytest.mark.parametrize(
    "asked",
    ["nowhere", "", "-h", "--all", "-q", "HEAD:mine.cu", "HEAD..main", "HEAD^{tree}", "a\nb",
     "--upload-pack=touch", "\udcff", "*", "HEAD~99"],
)  # fmt: skip
def test_what_is_no_revision_is_told(asked: str, project: Path, tmp_path: Path) -> None:
    commit(project, mine_cu=kernel_text())
    with pytest.raises(UsageError, match=r"cu@.*: no such revision; .*fetch-depth: 0") as told:
        extracted(project / "mine.cu", asked, tmp_path / "old")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "old").exists()


def test_a_branch_that_looks_like_an_option_is_a_revision(project: Path, tmp_path: Path) -> None:
    commit(project, mine_cu=kernel_text())
    git(project, "update-ref", "refs/heads/-x", "HEAD")
    assert extracted(project / "mine.cu", "-x", tmp_path / "old") is not None


def test_a_library_has_no_file() -> None:
    library = next(kernel for kernel in catalogue.builtin() if kernel.kind.is_library)
    with pytest.raises(UsageError, match="has no kernel file"):
        revision.version(library, "HEAD")


def test_a_working_tree_elsewhere_is_none_of_ours(project: Path, tmp_path: Path) -> None:
    """`core.worktree` may name any folder."""
    commit(project, mine_cu=kernel_text())
    (tmp_path / "elsewhere").mkdir()
    git(project, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match="its versions need git"):
        extracted(project / "mine.cu", "HEAD", tmp_path / "old")
