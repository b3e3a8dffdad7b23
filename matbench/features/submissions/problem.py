"""The problem that a submission answers: which product its reference computes, and its sizes.

The reference is run, on small inputs, in a process of its own; see `reference`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from matbench import files
from matbench.cache import kept
from matbench.errors import MatbenchError, UsageError
from matbench.features.submissions import reference
from matbench.features.submissions.supplied import with_supplied
from matbench.kernelfile import catalogue, expressions, includes, python_file, sizes

#: The longest time for a reference: importing PyTorch may take most of it.
_MOST_S = 120
#: Sides of a definition that may vary, if no workload says them, and what is left of its batch.
_VARIABLE, _BATCH = (16, 512, 4096), 2
#: What kernelbot's inputs are made of, unless its task says so.
_TEST = {"m": 256, "n": 256, "k": 256, "seed": 1}
_Side = Annotated[int, msgspec.Meta(ge=1, le=sizes.MAX_SIZE)]
#: Files with a definition's workloads, beside it.
WORKLOADS = ("workloads.jsonl", "workload.jsonl")


class Product(msgspec.Struct, frozen=True):
    """A product: the `table` of front matter that it asks for; the `roles` of its inputs, and what
    is `given` for these in Python. Of a class, `init` makes the arguments of one, pickled; `split`:
    the sides of A before the last, of which one is -1 (any); of kernelbot, how many `values` its
    tuple has."""

    table: dict[str, Any]
    roles: tuple[str, ...] = ("A", "B")
    given: tuple[str, ...] = ("A", "B")
    init: str = ""
    split: list[int] = []
    values: int = 0


class _Sides(msgspec.Struct):
    m: _Side
    n: _Side
    k: _Side


class _Task(msgspec.Struct):
    """What counts of a `task.yml`: sizes that are timed, or else those of its tests."""

    benchmarks: list[_Sides] = []
    tests: list[_Sides] = []


def of_file(path: Path) -> Product:
    """That of a file: KernelBench's problem, kernelbot's `task.yml` or a `definition.json`;
    `UsageError` if it cannot be read, or is no matrix product."""
    text = catalogue.read(path, str(path)).decode("utf-8-sig", errors="replace")
    if path.suffix in (".yml", ".yaml"):
        product = _of_task(text, path)
    elif path.suffix == ".json":
        product = _asked(_of_definition(text, path), path)
    else:
        product = _of_python(text, path, _TEST)
    try:
        sizes.parse_sizes(product.table.get("sizes", "1"))
    except UsageError as error:
        raise UsageError(f"{path}: the sizes of its inputs: {error}") from None
    return product


def _of_python(text: str, path: Path, test: dict[str, Any]) -> Product:
    """That of a `Model`, or of a `ref_kernel` with one of its tests."""
    python_file.tree(text, str(path))
    is_own = re.search(r"^(?:class )?ModelNew\b", text, re.MULTILINE) is not None
    return _asked({"file": with_supplied(text, path.parent), "is_own": is_own, "test": test}, path)


class _Axis(msgspec.Struct):
    value: _Side | None = None
    expression: str = ""


class _Tensor(msgspec.Struct):
    shape: list[str] | None
    dtype: str = "float32"


class _Definition(msgspec.Struct):
    """What counts of a `definition.json` of flashinfer-bench or SOL-ExecBench."""

    axes: dict[str, _Axis]
    inputs: dict[str, _Tensor]
    reference: str
    outputs: dict[str, _Tensor] = {}


class _Workload(msgspec.Struct):
    """A line of a file of workloads: one, or what has one."""

    axes: dict[str, _Side] = {}
    workload: _Workload | None = None


def _of_definition(text: str, path: Path) -> dict[str, Any]:
    """What is to be run for a definition, with its workloads."""
    try:
        found = msgspec.json.decode(text, type=_Definition)
    except (msgspec.MsgspecError, ValueError) as error:
        raise UsageError(f"{path}: no definition of a product: {error}") from None
    shapes = [one.shape or [] for one in found.inputs.values()]
    if len(shapes) not in (2, 4) or [] in shapes or len(found.outputs) > 1:
        what = f"inputs {', '.join(found.inputs)}"
        if len(found.outputs) > 1:
            what = f"outputs {', '.join(found.outputs)}"
        raise UsageError(f"{path}: {what}; matbench judges products of two matrices")
    needed = {name for shape in shapes for name in shape}
    python_file.tree(found.reference, f"{path}: reference")

    def known(given: dict[str, int]) -> dict[str, int]:
        for name, axis in found.axes.items():
            with suppress(MatbenchError):  # it has no expression, or that needs another axis
                given[name] = int(expressions.evaluate(axis.expression, given))
        return given

    values = known({name: axis.value for name, axis in found.axes.items() if axis.value})
    outer = {name for shape in shapes for name in shape[:-2]}
    free = [name for name, axis in found.axes.items() if not (axis.value or axis.expression)]
    usual = [{name: _BATCH if name in outer else side for name in free} for side in _VARIABLE]
    given, usual = ([known(one | values) for one in some] for some in (_workloads(path), usual))
    if unknown := needed - {*usual[0]}:
        raise UsageError(f"{path}: no definition of a product: no value of axis {min(unknown)}")
    return {
        "reference": found.reference, "shapes": shapes,
        "axes": {name: values.get(name) for name in found.axes},
        "workloads": [one for one in given if needed <= {*one}] or usual,
        "kinds": [one.dtype for one in found.inputs.values()],
        "result": next((one.dtype for one in found.outputs.values()), None),
    }  # fmt: skip


def _workloads(path: Path) -> list[dict[str, int]]:
    """The axes of each workload of a definition: beside it, or in flashinfer-bench's dataset."""
    places = [path.with_name(name) for name in WORKLOADS]
    for above in path.parents:
        if above.name == "definitions":
            within = path.relative_to(above).with_suffix(".jsonl")
            places.append(above.with_name("workloads") / within)
    place = next((place for place in places if place.is_file()), None)
    lines = [] if place is None else catalogue.read(place, str(place)).splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            one = msgspec.json.decode(line or b"{}", type=_Workload)
        except (msgspec.MsgspecError, ValueError) as error:
            raise UsageError(f"{place}:{number}: no workload: {error}") from None
        found.append((one.workload or one).axes)
    return found


def _asked(asked: dict[str, Any], path: Path) -> Product:
    """What a reference turns out to compute, which is kept for its text and what it imports."""
    told = msgspec.json.encode(asked)
    imported = includes.find_includes(asked["file"], path) if "file" in asked else ()
    by = Path(reference.__file__).read_bytes()
    key = f"reference {includes.identity(by + told, imported)}"
    return msgspec.json.decode(kept(key, lambda: _run(told, path)), type=Product)


def _run(asked: bytes, path: Path) -> bytes:
    """What the reference of a file turns out to compute, as JSON. All that it starts ends with
    it."""
    with files.temporary_folder() as folder:
        (folder / "asked.json").write_bytes(asked)
        found, said = folder / "found.json", folder / "said"
        command = [sys.executable, "-m", reference.__name__, "asked.json"]
        paths = os.pathsep.join([*filter(None, sys.path), str(path.parent.absolute())])
        with said.open("wb") as errors:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=errors, start_new_session=True,
                env={**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""},
            )  # fmt: skip
        try:
            code = process.wait(_MOST_S)
        except subprocess.TimeoutExpired:
            raise UsageError(f"{path}: its reference took longer than {_MOST_S} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code == 0 and found.is_file():
            return found.read_bytes()
        lines = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    told = lines[-1] if code == 1 and lines else f"its process ended with code {code}"
    raise UsageError(f"{path}: its reference: {told.removeprefix('NoProductError: '):.300}")


def _of_task(text: str, path: Path) -> Product:
    """That of a task, and of the `reference.py` beside it."""
    try:
        data = msgspec.json.encode(msgspec.yaml.decode(text))  # as it is passed on
        task, told = msgspec.json.decode(data, type=_Task), msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        why = " ".join(str(error).split()).replace('"<unicode string>", ', "")
        if not isinstance(error, msgspec.MsgspecError):
            why = "it is nested too deeply, or has an impossible number or date"
        raise UsageError(f"{path}: no task with `benchmarks` of m, n and k: {why}") from None
    of = [f"{one.m}x{one.n}x{one.k}" for one in task.benchmarks or task.tests]
    beside, product = path.with_name("reference.py"), Product({})
    if beside.is_file():
        text = catalogue.read(beside, str(beside)).decode("utf-8-sig", errors="replace")
        test = _TEST | next(iter(told.get("tests") or told.get("benchmarks") or ()), {})
        product = _of_python(text, beside, test)
    table = {"sizes": ",".join(dict.fromkeys(of))} if of else {}
    return msgspec.structs.replace(product, table=product.table | table)
