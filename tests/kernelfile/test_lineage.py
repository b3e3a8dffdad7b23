"""The order of kernels: each behind its previous one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.kernels import KernelWriter, kernel_text

from matbench.errors import UsageError
from matbench.kernelfile import catalogue
from matbench.kernelfile.catalogue import Catalogue
from matbench.model import Kernel, LaunchRules, Problem
from matbench.records.outcome import Claims

#: One that nothing precedes.
FIRST = Kernel(name="first", launch=LaunchRules(block=(1,), grid=(1,)))


def tree(text: str) -> dict[str, Kernel]:
    """Kernels of `name` and `name<previous`, in the order of the text."""
    found = {}
    for word in text.split():
        name, _, previous = word.partition("<")
        found[name] = msgspec.structs.replace(FIRST, name=name, previous=previous or None)
    return found


def names(kernels: list[Kernel]) -> list[str]:
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
        assert names(Catalogue(kernels).group("tutorial")) == expected.split()


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
    found = names(Catalogue(known.values()).group("ladder"))
    assert [name for name in found if name in main] == main
    assert found[:2] == ["thread-1d", "tiled"]
    numbers = [known[name].rung for name in found]
    assert numbers == [*range(1, len(found) + 1)]
    assert len(found) <= 16
    rungs = Catalogue(known.values()).group("gallery", "dot")
    assert names(rungs) == [
        "dot-one-warp", "dot-vectorized", "dot-compensated", "dot-shuffle", "dot-single-pass"
    ]  # fmt: skip


def test_a_previous_kernel_that_does_not_exist(write_kernel: KernelWriter) -> None:
    known = {kernel.name: kernel for kernel in catalogue.builtin()}
    for previous, reason in {
        "tild": "no kernel 'tild' (previous); did you mean 'tiled'?",
        "xyzzy": "no kernel 'xyzzy' (previous); name its file, too",
    }.items():
        path = write_kernel("mine", front=f'previous = "{previous}"')
        mine = catalogue.load(path)
        Catalogue([*known.values(), mine])  # nothing but the order needs it
        with pytest.raises(UsageError) as refused:
            catalogue.check_previous([mine], known)
        assert str(refused.value) == f"{path}: {reason}"


@pytest.mark.parametrize(
    ("text", "loop"),
    [("a<b b<a", "a → b → a"), ("a<b b<c c<b", "b → c → b → a"), ("a<c b<a c<b", "a → b → c → a")],
)
def test_a_loop_is_an_error(text: str, loop: str) -> None:
    with pytest.raises(UsageError, match="`previous` forms a cycle: ") as refused:
        Catalogue(tree(text).values())
    assert set(str(refused.value).split(": ")[-1].split(" → ")) == set(loop.split(" → "))
    assert Catalogue(tree("a b<a c<b").values()).kernels.keys() == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"mine"', "previous: a kernel cannot follow itself"),
        ('"Not a name"', "name 'Not a name': use lower-case letters"),
        ("3", "`previous`"),
    ],
)
def test_what_cannot_be_previous(value: str, reason: str, write_kernel: KernelWriter) -> None:
    path = write_kernel("mine", front=f"previous = {value}")
    with pytest.raises(UsageError, match=rf"mine\.cu:4: .*{reason}"):
        catalogue.load(path)


def test_it_is_part_of_nothing_that_is_built_claimed_or_measured(tmp_path: Path) -> None:
    """A table beside the file counts for the kernel's identity, but for this key."""
    lines = kernel_text().splitlines(keepends=True)
    end = lines.index("// ///\n")
    table = "".join(line.removeprefix("// ").removeprefix("//") for line in lines[1:end])
    path = tmp_path / "mine.cu"
    path.write_text("".join(lines[end + 1 :]), encoding="utf-8")

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
