"""The problem that a submission answers: which product its reference computes, and its sizes.

The reference is run, on small inputs, in a process of its own; see `reference`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from matbench import temporary
from matbench.cache import kept
from matbench.errors import UsageError
from matbench.features.submissions import reference
from matbench.kernelfile import catalogue

#: The longest time for a reference: importing PyTorch may take most of it.
_MOST_S = 120


class Product(msgspec.Struct, frozen=True):
    """A product: the `table` of front matter that it asks for; of a class, the arguments `init` it
    is made with; and into how many matrices the rows of A are `split`."""

    table: dict[str, Any]
    init: str = "[]"
    split: int = 1


def of_file(path: Path) -> Product:
    """That of a file: KernelBench's problem, kernelbot's `task.yml` or a `definition.json`.

    `UsageError`: it cannot be read, or it is no matrix product.
    """
    shown = str(path)
    text = catalogue.read(path, shown).decode("utf-8-sig", errors="replace")
    if path.suffix in (".yml", ".yaml"):
        return _of_task(text, shown)
    asked = _of_definition(text, path) if path.suffix == ".json" else {"file": text}
    told = msgspec.json.encode(asked)
    by = Path(reference.__file__).read_bytes()
    data = kept(f"reference {hashlib.sha256(by + told).hexdigest()}", lambda: _run(told, shown))
    return msgspec.json.decode(data, type=Product)


class _Axis(msgspec.Struct):
    value: int | None = None


class _Input(msgspec.Struct):
    shape: list[str] | None
    dtype: str = "float32"


class _Definition(msgspec.Struct):
    """What counts of a `definition.json` of flashinfer-bench or SOL-ExecBench."""

    axes: dict[str, _Axis]
    inputs: dict[str, _Input]
    reference: str


class _Workload(msgspec.Struct):
    axes: dict[str, int]


class _Trace(msgspec.Struct):
    """A line of a file of workloads: one, or what has one."""

    axes: dict[str, int] | None = None
    workload: _Workload | None = None


def _of_definition(text: str, path: Path) -> dict[str, Any]:
    """What is to be run for a definition, with the workloads in `workloads.jsonl` beside it."""
    try:
        found = msgspec.json.decode(text, type=_Definition)
        sides = [one.shape or [] for one in found.inputs.values()]
        axes = {name: axis.value for name, axis in found.axes.items()}
        named = {name for shape in sides for name in shape}
        if unknown := named - {*axes}:
            raise ValueError(f"no axis {min(unknown)}")
        beside, workloads = path.with_name("workloads.jsonl"), []
        if beside.is_file():
            lines = catalogue.read(beside, str(beside)).splitlines()
            traces = [msgspec.json.decode(line, type=_Trace) for line in lines if line.strip()]
            given = [one.axes or (one.workload.axes if one.workload else {}) for one in traces]
            needed = {name for name in named if axes[name] is None}
            workloads = [one for one in given if needed <= {*one}]
    except (msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{path}: no definition of a product: {error}") from None
    if [len(side) for side in sides] not in ([2, 2], [3, 3], [3, 2]):
        what = f"inputs {', '.join(found.inputs)}"
        raise UsageError(f"{path}: {what}; matbench judges products of two matrices")
    kinds = [one.dtype for one in found.inputs.values()]
    asked = {"reference": found.reference, "shapes": sides, "kinds": kinds}
    return {**asked, "axes": axes, "workloads": workloads}


def _run(asked: bytes, shown: str) -> bytes:
    """What the reference turns out to compute, as JSON."""
    with temporary.folder() as folder:
        (folder / "asked.json").write_bytes(asked)
        command = [sys.executable, "-m", reference.__name__, "asked.json"]
        paths = os.pathsep.join(filter(None, sys.path))
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=_MOST_S, check=False,
                env={**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UsageError(f"{shown}: its reference took longer than {_MOST_S} s") from None
        found = folder / "found.json"
        if done.returncode == 0 and found.is_file():
            return found.read_bytes()
    said = (done.stderr.strip().splitlines() or ["it ended"])[-1]
    raise UsageError(f"{shown}: its reference: {said.removeprefix('NoProductError: '):.300}")


class _Sides(msgspec.Struct):
    m: int
    n: int
    k: int


class _Task(msgspec.Struct):
    """What counts of a `task.yml`: sizes that are timed, or else those of its tests."""

    benchmarks: list[_Sides] = []
    tests: list[_Sides] = []


def _of_task(text: str, shown: str) -> Product:
    try:
        task = msgspec.yaml.decode(text, type=_Task)
    except (msgspec.MsgspecError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UsageError(f"{shown}: no task with `benchmarks` of m, n and k: {why}") from None
    sizes = [f"{one.m}x{one.n}x{one.k}" for one in task.benchmarks or task.tests]
    return Product({"sizes": ",".join(dict.fromkeys(sizes))} if sizes else {})
