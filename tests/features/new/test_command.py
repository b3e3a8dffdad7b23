"""`matbench new`: its file loads, builds and is right at once; what it refuses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.cli import Matbench
from support.disk import full_after
from support.optional import some

from matbench import workloads
from matbench.bench.session import Session
from matbench.features.new import scaffold
from matbench.kernelfile import catalogue, front_matter, sweep
from matbench.kernelfile.host_file import HostReader
from matbench.kernelfile.sizes import parse_problems
from matbench.kernelfile.syntax import without_comments
from matbench.model import FrontMatter, Kernel

COPIED = [k for k in catalogue.builtin() if k.source and not k.kind.is_library]
TILED = next(kernel for kernel in COPIED if kernel.name == "tiled")


@pytest.mark.parametrize(
    "origin",
    some(
        [kernel.name for kernel in COPIED], *("tiled", "dot-tree", "cubes-block", "reverse-blocks")
    ),
)
def test_a_new_file_loads_and_is_right_at_once(
    origin: str, tmp_path: Path, matbench: Matbench, session: Session
) -> None:
    matbench("new", "mine", "--from", origin, "--output", tmp_path)
    kernel = catalogue.load(tmp_path / "mine.cu")
    catalogue.Catalogue([*catalogue.builtin(), kernel])  # available together with its origin

    first = {name: values[:1] for name, values in kernel.sweep.items()}
    workload = workloads.workload_of(kernel)
    problems = parse_problems(workload.smoke_sizes, workload)
    cases = sweep.cases([kernel], problems, first, session.backend.info)
    runnable = [case for case in cases if case.skip is None]
    if not runnable:
        assert "needs='cuda'" in str(cases[0].skip)
        pytest.skip(str(cases[0].skip))
    case = runnable[-1]
    outcome = session.measure(case)
    assert (outcome.status, outcome.reason) == ("measured", None)


def test_it_says_what_to_type_next_and_that_works(
    tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = matbench("new", "mine", "--from", "tiled")
    wrote, then = result.output.splitlines()
    assert wrote == "wrote mine.cu: a copy of tiled, named mine"
    assert then == "next: matbench watch mine.cu"
    text = (tmp_path / "mine.cu").read_text(encoding="utf-8")
    commands = [line.split("   ")[1] for line in text.splitlines() if "//   matbench" in line]
    assert [shlex.split(command)[:2] for command in commands] == [
        ["matbench", "watch"], ["matbench", "check"], ["matbench", "run"],
    ]  # fmt: skip
    assert all("mine.cu" in command for command in commands)
    # Each key is explained in place.
    lines = text.splitlines()
    for key in ("name =", "[sweep]", "[launch]", "where =", "block =", "grid =", "[model]"):
        [at] = [i for i, line in enumerate(lines) if line.startswith(f"// {key}")]
        assert lines[at - 1].startswith("// # "), key


def test_the_headers_of_a_kernel_come_along(tmp_path: Path, matbench: Matbench) -> None:
    header = tmp_path / "helpers.cuh"
    for name in ("mine", "other.cu"):  # a file that does not exist yet is named like any
        result = matbench("new", name, "--from", "vectorized", "--output", tmp_path)
        assert (f"wrote {header}, which it includes\n" in result.output) == (name == "mine")
        [included] = catalogue.load(tmp_path / f"{Path(name).stem}.cu").includes
        assert included.path == str(header)
    [original] = next(one for one in COPIED if one.name == "vectorized").includes
    assert header.read_bytes() == Path(original.path).read_bytes()
    assert len([*tmp_path.iterdir()]) == 3


@pytest.mark.parametrize(
    "name", ["Mine", "", "-", "a b", "../mine", "mine.cu/x", "naïve", "a" * 300]
)
def test_a_bad_name_is_refused_in_one_line(name: str, tmp_path: Path, matbench: Matbench) -> None:
    result = matbench("new", "--output", tmp_path, "--", name, code=2)
    assert result.output.count("\n") == 1
    reason = "File name too long" if len(name) > 60 else "use lower-case letters, digits"
    assert reason in result.output
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced(tmp_path: Path, matbench: Matbench) -> None:
    path = tmp_path / "mine.cu"
    path.write_text("precious", encoding="utf-8")
    result = matbench("new", "mine", "--output", tmp_path, code=2)
    assert result.output == f"matbench: {path} exists; choose another name or --output\n"
    told = matbench("new", path, code=2).stderr
    assert told.endswith(f"exists; to make it run: matbench adopt {path}\n")
    assert path.read_text(encoding="utf-8") == "precious"
    matbench("new", "mine", "--output", tmp_path / "other.cu")
    assert catalogue.load(tmp_path / "other.cu").name == "mine"


def test_a_workload_has_a_kernel_to_begin_with(tmp_path: Path, matbench: Matbench) -> None:
    matbench("new", "mine", "--output", tmp_path)
    assert "naive-2d" in (tmp_path / "mine.cu").read_text(encoding="utf-8").split("// ///")[2]
    for name in {kernel.workload for kernel in COPIED}:
        matbench("new", f"my-{name}", "--workload", name, "--output", tmp_path)
        assert catalogue.load(tmp_path / f"my-{name}.cu").workload == name


def test_a_full_disk_leaves_no_half_of_a_file(matbench: Matbench, tmp_path: Path) -> None:
    with full_after(100):
        told = matbench("new", "mine", "--output", tmp_path, code=2).stderr
    assert told.endswith("mine.cu: cannot be written: File too large\n")
    assert told.count("\n") == 1
    assert not list(tmp_path.glob("*.cu"))


# What a copy has of its origin


def made(name: str, origin: Kernel = TILED) -> Kernel:
    text = scaffold.source(name, origin, f"{name}.cu")
    return front_matter.parse(text.encode(), f"{name}.cu", reader=HostReader)


@pytest.mark.parametrize("origin", COPIED, ids=lambda kernel: kernel.name)
def test_a_copy_differs_in_its_name_alone(origin: Kernel) -> None:
    mine = made("mine", origin)
    assert (mine.name, mine.group, mine.previous) == ("mine", "tutorial", origin.name)
    for key in set(FrontMatter.__struct_fields__) - {"name", "summary", "group", "previous"}:
        assert getattr(mine, key) == getattr(origin, key), key
    assert without_comments(mine.source).split() == without_comments(origin.source).split()
    assert mine.parameters == origin.parameters


@pytest.mark.parametrize("origin", COPIED, ids=lambda kernel: kernel.name)
def test_a_copy_explains_itself_but_does_not_claim_what_its_origin_measured(origin: Kernel) -> None:
    text = scaffold.source("mine", origin, "mine.cu")
    assert max(map(len, set(text.splitlines()) - set(origin.source.splitlines()))) <= 100
    assert not re.search("^// (Adds|Predicted|Limit|Measured): ", text, re.MULTILINE)
    assert "cuBLAS (H200)" not in text
    remarks = origin.source.split("// ///\n\n", 1)[1].split("\n\n")[0]
    if remarks.startswith("// Adds: "):
        remarks = remarks.split("\n//\n", 1)[1]
    assert f"\n\n{remarks}\n" in text
