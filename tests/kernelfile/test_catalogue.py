"""The catalogue of kernels: finding and reading files, names, groups and baselines."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from support.fixtures import Noted
from support.golden import TableRegression
from support.kernels import kernel_text, own_file, refusal, saved

from matbench.errors import UsageError
from matbench.kernelfile import catalogue, front_matter, includes
from matbench.kernelfile.catalogue import Catalogue
from matbench.model import HOST, PYTHON, Kernel, LaunchRules, Problem
from matbench.records.outcome import Claims


@pytest.mark.parametrize(
    ("file", "name"),
    [("my kernel é", "my-kernel-e"), ("h ö", "h-o"), ("核", "kernel"), ("_A.b-", "a.b")],
)
def test_a_kernel_without_a_name_has_its_files(file: str, name: str, tmp_path: Path) -> None:
    path = saved(tmp_path / f"{file}.cu", kernel_text().replace('// name = "mine"\n', ""))
    assert catalogue.load(path).name == name


def load(path: Path, text: str) -> Kernel:
    path.write_text(text, encoding="utf-8")
    return catalogue.load(path)


# -- built-in kernels ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_a_kernel_file_bears_the_name_of_its_kernel(kernel: Kernel) -> None:
    folder, name = Path(kernel.path).parts[1:]
    if name == "numpy.py::numpy":
        return
    number = f"{kernel.rung:02}-" if folder == "ladder" else ""
    assert name == f"{number}{kernel.name}.cu"
    assert folder.rstrip("s") == kernel.group or kernel.group in ("tutorial", "baseline")
    source = own_file(kernel.name).read_bytes()
    assert kernel.sha256 == includes.identity(source, kernel.includes)
    assert kernel.source.encode() == source


def test_another_function_or_table_is_another_kernel(tmp_path: Path) -> None:
    file = saved(tmp_path / "f.py", "def f(A, B): return A @ B\ndef g(A, B): return A @ B\n")
    asked: list[tuple[str, dict[str, Any]]] = [("f", {}), ("g", {}), ("f", {"summary": "Mine"})]
    kernels = [catalogue.load(Path(f"{file}::{name}"), given=given) for name, given in asked]
    assert len({kernel.sha256 for kernel in kernels}) == 3


def test_a_kernel_is_parsed_once_per_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = catalogue.builtin()
    assert all(one is other for one, other in zip(kernels, catalogue.builtin(), strict=True))
    files = "05-vectorized.cu", "helpers.cuh"
    for name in files:
        shutil.copy(catalogue.kernels_folder() / "ladder" / name, tmp_path)
    monkeypatch.setattr(catalogue, "kernels_folder", lambda: tmp_path)
    assert [header.name for header in catalogue.builtin()[0].includes] == ["helpers.cuh"]
    hashes = {catalogue.builtin()[0].sha256}
    for name in files:
        with (tmp_path / name).open("a") as file:
            file.write("// changed\n")
        hashes.add(catalogue.builtin()[0].sha256)
    assert len(hashes) == 3


@pytest.fixture
def new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forgets what this process has parsed; the cache is the test's own."""
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return catalogue._parsed.cache_clear


def test_parsed_once(
    new_process: Callable[[], None], noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = noted(front_matter, "parse")
    new_process()
    first = catalogue.builtin()
    paths = sorted(catalogue.kernels_folder().rglob("*.cu"))
    assert [given[2] for given in parsed] == paths
    new_process()
    again = catalogue.builtin()
    assert len(parsed) == len(paths)
    assert again == first
    assert again[0] is not first[0]
    # Other code may read the same files differently.
    monkeypatch.setattr("matbench.cache.revision", lambda: "another")
    new_process()
    assert catalogue.builtin() == first
    assert [given[2] for given in parsed] == paths * 2


def test_kernel_files_are_parsed_without_a_cache(
    new_process: Callable[[], None], tmp_path: Path, noted: Noted
) -> None:
    (tmp_path / "cache").touch()  # not a folder
    parsed = noted(front_matter, "parse")
    new_process()
    assert "tiled" in {kernel.name for kernel in catalogue.builtin()}
    assert len(parsed) > 40


def test_the_same_file_in_another_folder_is_another_kernel(
    new_process: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = own_file("tiled").read_bytes()
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "tiled.cu").write_bytes(text)
        monkeypatch.setattr(catalogue, "kernels_folder", lambda folder=folder: folder)
        new_process()
        assert catalogue.builtin()[0].file == str(folder / "tiled.cu")


def test_only_what_is_in_matbench_s_own_folder_of_baselines_is_trusted(tmp_path: Path) -> None:
    own = [kernel for kernel in catalogue.builtin() if kernel.kind.is_library]
    assert {kernel.group for kernel in own} == {"baseline"}
    assert len({kernel.sha256 for kernel in own}) == len(own) == 18
    folder = tmp_path / "kernels" / "baselines"
    shutil.copytree(Path(own[0].file).parent, folder)
    for name, kind in (("cublas.cu", HOST), ("cublas-dot.cu", None), ("numpy.py", PYTHON)):
        by_path = catalogue.load(Path(own[0].file).with_name(name))
        assert (by_path.kind, by_path.sha256) in {(k.kind, k.sha256) for k in own}
        if kind is None:
            with pytest.raises(UsageError, match="functions compute matmul alone"):
                catalogue.load(folder / name)
        else:
            kernel = catalogue.load(folder / name)
            assert (kernel.kind, kernel.group) == (kind, "tutorial")


# -- files that cannot be read ----------------------------------------------------------------


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "large.cu").open("wb") as file:
        file.truncate(2**40)
    assert refusal(tmp_path / "large.cu") == ": larger than 500,000 bytes; is it a kernel file?"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A pipe without a writer would block, a device has no end."""
    os.mkfifo(tmp_path / "pipe.cu")
    (tmp_path / "link.cu").symlink_to("pipe.cu")
    for path in (tmp_path / "pipe.cu", tmp_path / "link.cu", Path("/dev/zero"), Path("/dev/null")):
        assert refusal(path) == ": cannot be read: not a regular file"
    with pytest.raises(UsageError, match=r"link\.cu: cannot be read: not a regular file"):
        catalogue.load(tmp_path / "link.cu")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.cu"))
        assert refusal(tmp_path / "socket.cu").startswith(": cannot be read: ")


def test_a_nul_byte_in_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\ufffdb\.cu: .*: its path contains a NUL byte"):
        catalogue.load(tmp_path / "a\0b.cu")


@pytest.mark.parametrize("name", ["f.py", "mine.cu"])
def test_any_error_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.write_text("def f(A, B): return A @ B\n" if name == "f.py" else kernel_text())
    catalogue.load(path)
    monkeypatch.setattr(includes, "find_includes", mock.Mock(side_effect=KeyError("no key")))
    with pytest.raises(UsageError, match=rf"{name}: KeyError: 'no key'"):
        catalogue.load(path)


# -- many at once ----------------------------------------------------------------------------


def names(*kernels: Kernel) -> list[str]:
    return [kernel.name for kernel in catalogue.told_apart(kernels)]


def test_kernels_of_one_name_are_called_by_their_paths(tmp_path: Path) -> None:
    one, two = load(tmp_path / "a.cu", kernel_text()), load(tmp_path / "b.cu", kernel_text() + "//")
    assert names(one, two) == [str(tmp_path / "a.cu"), str(tmp_path / "b.cu")]
    assert names(one) == names(two) == ["mine"]
    again = catalogue.load(tmp_path / "." / "a.cu", shown_as="./a.cu")
    assert names(one, again) == ["mine", "mine"]
    assert len(Catalogue([one, again]).kernels) == 1


def test_a_kernel_of_matbench_may_be_named_by_its_path(tmp_path: Path) -> None:
    """Loaded from another folder, the kernel is the same; changed, it is another."""
    path = own_file("tiled")
    named = catalogue.load(path)
    assert Catalogue([*catalogue.builtin(), named]).get("tiled").path == str(path)
    copy = load(tmp_path / "tiled.cu", path.read_text(encoding="utf-8"))
    assert Catalogue([*catalogue.builtin(), copy]).get("tiled").path == str(tmp_path / "tiled.cu")
    changed = load(tmp_path / "tiled.cu", path.read_text(encoding="utf-8") + "\n")
    assert names(named, copy) == ["tiled", "tiled"]
    assert names(changed, named) == [str(tmp_path / "tiled.cu"), "tiled"]


def test_names_like_those_of_libraries_are_free_and_equal_ones_are_paths(tmp_path: Path) -> None:
    mine = [load(tmp_path / "mine.cu", kernel_text(name)) for name in ("cublas-like", "numpy")]
    assert [names(kernel) for kernel in mine] == [["cublas-like"], [str(tmp_path / "mine.cu")]]
    assert {kernel.group for kernel in mine} == {"tutorial"}


def test_a_copy_of_a_baseline_is_no_other_kernel(tmp_path: Path) -> None:
    source = own_file("host-loop").read_text(encoding="utf-8")
    copy = load(tmp_path / "host-loop.cu", source)
    assert Catalogue([*catalogue.builtin(), *catalogue.told_apart([copy])]).get("host-loop") == copy
    source = source.replace("host-loop", "changed").replace("host_loop", "changed")
    changed = load(tmp_path / "changed.cu", source)
    with pytest.raises(UsageError, match="is reserved for matbench"):
        catalogue.told_apart([changed])


def test_baselines_by_name_and_pattern(table_regression: TableRegression) -> None:
    everything = Catalogue(catalogue.builtin())

    def names(asked: str) -> str:
        try:
            found = everything.baselines(eval(asked))
        except UsageError as error:
            return str(error)
        return ", ".join(kernel.name for kernel in found) or "none"

    table_regression("baselines.txt", names)


# -- which kernel follows which ------------------------------------------------------------------


#: One that nothing precedes.
FIRST = Kernel(name="first", launch=LaunchRules(block=(1,), grid=(1,)))


def tree(text: str) -> dict[str, Kernel]:
    """Kernels of `name` and `name<previous`, in the order of the text."""
    found = {}
    for word in text.split():
        name, _, previous = word.partition("<")
        found[name] = msgspec.structs.replace(FIRST, name=name, previous=previous or None)
    return found


def in_order(kernels: list[Kernel]) -> list[str]:
    return [kernel.name for kernel in kernels]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b a c", "a b c"),
        ("a<b b<c c", "c b a"),
        ("root leaf<root b<root c<b", "root b c leaf"),
        ("b<elsewhere a", "a b"),  # what it follows is not at hand
    ],
)
def test_each_kernel_stands_behind_its_previous_one(text: str, expected: str) -> None:
    for kernels in (tree(text).values(), reversed(tree(text).values())):
        assert in_order(Catalogue(kernels).group("tutorial")) == expected.split()


def test_every_kernel_of_matbench_follows_one_that_exists() -> None:
    known = {kernel.name: kernel for kernel in catalogue.builtin()}
    catalogue.check_previous(known.values(), known)
    ladders = [kernel for kernel in known.values() if kernel.group == "ladder"]
    assert all(known[kernel.previous or ""].workload == kernel.workload for kernel in ladders)
    for rung in ladders:
        assert catalogue.line_to(rung, known)[0].group == "tutorial"
    main = [
        "thread-tile-1d", "thread-tile-2d", "vectorized", "double-buffered", "async-copied",
        "warp-tiled", "pipelined",
    ]  # fmt: skip
    found = in_order(Catalogue(known.values()).group("ladder"))
    assert [name for name in found if name in main] == main
    assert found[:2] == ["thread-1d", "tiled"]
    numbers = [known[name].rung for name in found]
    assert numbers == [*range(1, len(found) + 1)]
    assert len(found) <= 21
    rungs = Catalogue(known.values()).group("gallery", "dot")
    assert in_order(rungs) == [
        "dot-one-warp", "dot-vectorized", "dot-compensated", "dot-shuffle", "dot-single-pass"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "loop"),
    [("a<b b<a", "a → b → a"), ("a<b b<c c<b", "b → c → b → a"), ("a<c b<a c<b", "a → b → c → a")],
)
def test_a_loop_is_an_error(text: str, loop: str) -> None:
    with pytest.raises(UsageError, match="`previous` forms a cycle: ") as refused:
        Catalogue(tree(text).values())
    assert set(str(refused.value).split(": ")[-1].split(" → ")) == set(loop.split(" → "))
    assert Catalogue(tree("a b<a c<b").values()).kernels.keys() == {"a", "b", "c"}


def test_it_is_part_of_nothing_that_is_built_claimed_or_measured(tmp_path: Path) -> None:
    """A table beside the file counts for the kernel's identity, but for this key."""
    lines = kernel_text().splitlines(keepends=True)
    end = lines.index("// ///\n")
    table = "".join(line.removeprefix("// ").removeprefix("//") for line in lines[1:end])
    path = saved(tmp_path / "mine.cu", "".join(lines[end + 1 :]))

    def loaded(more: str) -> Kernel:
        path.with_suffix(".toml").write_text(more + table, encoding="utf-8")
        return catalogue.load(path)

    alone, follower = loaded(""), loaded('previous = "tiled"\n')
    assert follower.previous == "tiled"
    assert follower.sha256 == alone.sha256 != loaded("padding = 8\n").sha256
    assert follower.source == alone.source
    assert Claims.from_kernel(follower) == Claims.from_kernel(alone)
    problem = Problem(64, 64, 64)
    assert follower.values(problem) == alone.values(problem)
    assert msgspec.structs.replace(follower, previous=None) == alone
