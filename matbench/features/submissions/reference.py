"""Names the product that a problem's reference computes, by running it on small inputs.

A program: `python -m matbench.features.submissions.reference asked.json` writes what it found to
`found.json`; an error is its last line. It runs code of others, so it knows nothing of matbench.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: Small sides in place of those of the problem: different ones where these differ.
_SIDES = (3, 5, 2, 7, 4, 6)
#: By type, up to which whole numbers are exact; inputs are as large as their sums allow.
_EXACT = {"float32": 1 << 24, "float64": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8}
_LARGEST_INPUT = 128
#: The inputs of the problem itself are taken if none else work, up to so many numbers.
_MOST_NUMBERS = 1 << 25
#: Sides of a definition that may vary, if no workload says them.
_VARIABLE = (16, 512, 4096)


class NoProductError(Exception):
    """The reference computes something else."""


class Reference(NamedTuple):
    """What is run, with what makes an input of an array, the inputs' shapes and types, and the
    arguments that its class was made with."""

    run: Callable[..., Any]
    make: Callable[[Any, str], Any]
    shapes: Sequence[Sequence[int]]
    kinds: Sequence[str]
    init: Sequence[Any] = ()


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """The `table` of front matter, `init` and `split` as in `problem.Product`.

    `asked` has the text of a problem's `file`; or of a definition's `reference`, with the names of
    its inputs' sides in `shapes`, their `kinds`, the values of `axes` (None: any), and `workloads`,
    which give values to those.
    """
    of = _of_file(asked["file"]) if "file" in asked else _of_definition(asked)
    if len(of.shapes) != 2:
        raise NoProductError(f"takes {len(of.shapes)} inputs, not two matrices")
    for sides in (_small(of.shapes), of.shapes):
        if sum(map(math.prod, sides)) > _MOST_NUMBERS:
            raise NoProductError("does not run on small matrices")
        try:
            transpose, is_batch, is_split = _named(of, sides)
            break
        except NoProductError:
            raise
        except Exception:  # it may insist on its own sides
            if sides is of.shapes:
                raise
    kind, first = of.kinds[0], of.shapes[0][0]
    table: dict[str, Any] = {"transpose": transpose}
    if kind in ("float16", "bfloat16", "float64"):
        table["precision"] = kind
    if is_batch:
        table["batch"] = first
    is_file = "file" in asked
    table |= {"sizes": _size(of.shapes, transpose)} if is_file else _of_axes(asked, transpose)
    if is_split:
        table["launch"] = {"where": [f"M % {first} == 0"]}
    return {"table": table, "init": repr([*of.init]), "split": first if is_split else 1}


def _of_file(text: str) -> Reference:
    """That of KernelBench's `Model`. Of the file, which may be a submission, too, nothing else is
    run: imports, constants and what it defines."""
    names: dict[str, Any] = {"__name__": "problem"}
    module = ast.parse(text)
    module.body = [
        node
        for node in module.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.decorator_list)
        or (isinstance(node, ast.Assign) and not any(map(_is_call, ast.walk(node))))
    ]
    exec(compile(module, "problem.py", "exec"), names)  # noqa: S102
    given = _examples(names["get_inputs"])
    init = names["get_init_inputs"]() if "get_init_inputs" in names else []
    model = names["Model"](*init)
    run = model if callable(model) else model.forward
    return Reference(run, _maker(given), [one.shape for one in given], [*map(_kind, given)], init)


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call)


def _of_definition(asked: dict[str, Any]) -> Reference:
    names: dict[str, Any] = {"__name__": "reference"}
    exec(compile(asked["reference"], "reference.py", "exec"), names)  # noqa: S102
    others = iter((11, 13, 17, 19, 23))
    axes = {name: value or next(others) for name, value in asked["axes"].items()}
    shapes = [tuple(axes[name] for name in shape) for shape in asked["shapes"]]
    return Reference(names["run"], _maker([]), shapes, asked["kinds"])


def _examples(get_inputs: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The inputs of a problem; if they are PyTorch's, without their memory."""
    torch = sys.modules.get("torch")
    if torch is not None:
        try:
            with torch.device("meta"):
                return get_inputs()
        except Exception:  # something in it needs numbers
            return get_inputs()
    return get_inputs()


def _kind(one: Any) -> str:
    return str(one.dtype).removeprefix("torch.")


def _maker(given: Sequence[Any]) -> Callable[[Any, str], Any]:
    """What makes an input of an array of whole numbers: PyTorch's, or NumPy's if those are."""
    import numpy

    if given and isinstance(given[0], numpy.ndarray):
        return lambda values, kind: values.astype(kind)
    torch = sys.modules.get("torch")
    if torch is None:
        return lambda values, kind: values.astype("float32" if kind == "bfloat16" else kind)
    return lambda values, kind: torch.from_numpy(values).to(getattr(torch, kind))


def _small(shapes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    sides = iter(itertools.cycle(_SIDES))
    smaller: dict[int, int] = {1: 1}
    for side in itertools.chain.from_iterable(shapes):
        if side not in smaller:
            smaller[side] = next(sides)
    return [tuple(smaller[side] for side in shape) for shape in shapes]


def _named(of: Reference, shapes: Sequence[Sequence[int]]) -> tuple[str, bool, bool]:
    """The letters of the product, whether it is one of a batch, and whether A is split."""
    import numpy

    random = numpy.random.default_rng(1)
    if unknown := {*of.kinds} - {*_EXACT}:
        raise NoProductError(f"takes {min(unknown)}; its inputs must be {', '.join(_EXACT)}")
    terms = max(map(max, shapes))
    most = math.isqrt(min(_EXACT[kind] for kind in of.kinds) // terms)
    most = max(1, min(_LARGEST_INPUT, most))
    values = [random.integers(-most, most + 1, tuple(shape)).astype("float32") for shape in shapes]
    returned = of.run(*map(of.make, values, of.kinds))
    returned = returned.detach().float().numpy() if hasattr(returned, "detach") else returned
    C, (A, B) = numpy.asarray(returned), values
    split = A.ndim == 3 and B.ndim == 2
    if A.ndim not in (2, 3) or B.ndim not in (2, 3) or (A.ndim == 2 and B.ndim == 3):
        raise NoProductError(f"takes arrays of {A.ndim} and {B.ndim} dimensions, not two matrices")
    for transpose in ("NN",) if split else ("NN", "NT", "TN", "TT"):
        a, b = (
            one.swapaxes(-1, -2) if letter == "T" else one
            for one, letter in zip((A, B), transpose, strict=True)
        )
        if a.shape[-1] == b.shape[-2] and (b.ndim == 2 or a.shape[0] == b.shape[0]):
            expected = a @ b
            if expected.shape == C.shape and (expected == C).all():
                return transpose, B.ndim == 3, split
    raise NoProductError("its reference computes no product of two matrices")


def _sides(shapes: Sequence[Sequence[Any]], transpose: str) -> tuple[Any, Any, Any]:
    """M, N and K, or the names of these."""
    A, B = shapes
    M, K = A[-2:] if transpose[0] == "N" else A[:-3:-1]
    return M, B[-1] if transpose[1] == "N" else B[-2], K


def _size(shapes: Sequence[Sequence[int]], transpose: str) -> str:
    """M×N×K, where rows of an A of three dimensions that meets one matrix all count."""
    M, N, K = _sides(shapes, transpose)
    A, B = shapes
    return f"{M * A[0] if len(A) > len(B) else M}x{N}x{K}"


def _of_axes(asked: dict[str, Any], transpose: str) -> dict[str, Any]:
    """The sizes of a definition, and what they must be: sides of one value, and equal ones."""
    names, values = dict(zip("MNK", _sides(asked["shapes"], transpose), strict=True)), asked["axes"]
    where = [f"{side} == {values[name]}" for side, name in names.items() if values[name]]
    where += [
        f"{one} == {other}"
        for one, other in itertools.combinations(names, 2)
        if names[one] == names[other] and not values[names[one]]
    ]
    given = asked["workloads"] or [dict.fromkeys(values, side) for side in _VARIABLE]
    sizes = ["x".join(str(values[n] or one[n]) for n in names.values()) for one in given]
    return {"sizes": ",".join(dict.fromkeys(sizes)), "launch": {"where": where}}


if __name__ == "__main__":
    sys.path.insert(0, "")
    found = main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")  # it may print anything
