"""Names the product that a problem's reference computes, by running it on small inputs.

A program: `python -m matbench.features.submissions.reference asked.json` writes what it found to
`found.json`; an error is its last line. It runs code of others on a CPU, and knows nothing of
matbench.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import math
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: Small sides in place of those of the problem: different ones where these differ.
_SIDES = (3, 5, 2, 7, 4, 6)
#: By type, up to which whole numbers are exact; inputs are as large as their sums allow.
_EXACT = {
    "float32": 1 << 24, "float64": 1 << 24, "float16": 1 << 11, "bfloat16": 1 << 8,
    "float8_e4m3fn": 1 << 4, "float8_e4m3fnuz": 1 << 4, "float8_e5m2": 1 << 3,
}  # fmt: skip
#: Those of 8 bits in front matter. Their sums are in a type of at least 16.
_EIGHT_BITS = {"float8_e4m3fn": "e4m3", "float8_e4m3fnuz": "e4m3", "float8_e5m2": "e5m2"}
_LARGEST_INPUT = 128
#: The inputs of the problem itself are taken if none else work, up to so many numbers.
_MOST_NUMBERS = 1 << 25
#: What a problem is known by in a submission's own file; `import *` may have any of it.
_OWN = {"Model", "get_inputs", "get_init_inputs", "*"}
#: Rows, columns and terms that have a factor in common, where blocks have one.
_BLOCK = 128


class NoProductError(Exception):
    """The reference computes something else."""


class Reference(NamedTuple):
    """What is run, with what makes an input of an array, and the inputs' shapes and types; of a
    class, the arguments `init` it was made with. `result`: the type that its result must have.
    `values`: how many kernelbot's tuple has; no other shapes are possible then."""

    run: Callable[..., Any]
    make: Callable[[Any, str], Any]
    shapes: Sequence[Sequence[int]]
    kinds: Sequence[str]
    init: Sequence[Any] = ()
    result: str | None = None
    values: int = 0


def main(asked: dict[str, Any]) -> dict[str, Any]:
    """What `problem.Product` has. `asked` has the text of a problem's `file`, whether it is a
    submission's (`is_own`), and one of kernelbot's tests; or of a definition's `reference`, with
    the names of its inputs' sides in `shapes`, their `kinds`, the values of `axes` (None: any),
    `workloads`, which give values to those, and the type of the `result`."""
    of = _of_file(asked) if "file" in asked else _of_definition(asked)
    roles = _roles(of.kinds)
    transpose, scales, result = _tried(of, roles)
    at = [roles.index(role) for role in "AB"]
    table = {"transpose": transpose, **_types(of.kinds[at[0]], scales, result)}
    A, B = (of.shapes[i] for i in at)
    if "file" in asked:
        table |= {} if of.values else {"sizes": _size((A, B), transpose, {})}
        table |= {"batch": [A[0]]} if len(B) == 3 else {}
        rows = [*A[:-2], None]
    else:
        named = [asked["shapes"][i] for i in at]
        table |= _of_axes(asked, named, transpose)
        rows = [asked["axes"][name] for name in named[0][:-1]]
    split: list[int] = []
    if len(A) > len(B):
        fixed, split = math.prod(filter(None, rows)), [n or 1 for n in rows]
        split[max((i for i, n in enumerate(rows) if n is None), default=-1)] = -1
        if fixed > 1 or None not in rows:
            asks = f"M % {fixed} == 0" if None in rows else f"M == {fixed}"
            table.setdefault("launch", {}).setdefault("where", []).append(asks)
    given = [_given(role, of.shapes[i], split, scales) for i, role in enumerate(roles)]
    try:
        init = repr(pickle.dumps([*of.init])) if of.init else ""
    except Exception as error:
        init = ""  # a submission's own file makes them
        if not asked["is_own"]:
            told = f"get_init_inputs() has what cannot be passed on: {error}"
            raise NoProductError(told) from None
    found = {"table": table, "init": init, "split": split, "values": of.values}
    return {**found, "roles": roles, "given": given}


def _types(kind: str, scales: str | None, result: str) -> dict[str, Any]:
    """What front matter says of a product's types, and of the sums of those of 8 bits."""
    table: dict[str, Any] = {"precision": kind} if kind != "float32" else {}
    if kind in _EIGHT_BITS:
        storage = _EIGHT_BITS[kind]
        table = {"precision": storage, "storage": storage, "accumulator": "float22"}
    if scales is not None:
        table |= {"scales": scales} | ({"promotes": _BLOCK} if scales == "blocks" else {})
    return table | ({} if result == kind else {"result": result})


def _given(role: str, shape: Sequence[int], split: list[int], scales: str | None) -> str:
    """What is passed on, in Python, of the array that matbench has for an input."""
    if role == "A" and split:
        return f"A.reshape({', '.join(map(str, split))}, A.shape[-1])"
    if role in "AB" or scales == "blocks":
        return role
    return f"{role}.reshape({[1 if side == 1 else -1 for side in shape]})"


def _loaded(text: str, *, is_own: bool = False) -> dict[str, Any]:
    """The names of a module, for which a GPU is the CPU. Of a file that `is_own`, nothing is run
    but what its problem needs."""
    module = ast.parse(text)
    if is_own:
        module.body = _needed(module.body, _OWN)
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and str(node.value).startswith("cuda"):
            node.value = "cpu"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "cuda":
            node.func.attr, node.args = "cpu", []  # type: ignore[attr-defined]
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(module, "problem.py", "exec"), names)  # noqa: S102
    return names


def _needed(body: Sequence[ast.stmt], names: set[str]) -> list[ast.stmt]:
    """The statements that bind or change these names, and the names in those, and so on."""
    needed: set[ast.stmt] = set()
    while more := {node for node in body if _bound(node) & names} - needed:
        needed |= more
        walked = itertools.chain.from_iterable(map(ast.walk, more))
        names = names | {inner.id for inner in walked if isinstance(inner, ast.Name)}
    return [node for node in body if node in needed]


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    within = [*ast.walk(node)]
    imported = [one.asname or one.name for one in within if isinstance(one, ast.alias)]
    places = [one for one in within if isinstance(getattr(one, "ctx", None), ast.Store)]
    stored = itertools.chain.from_iterable(map(ast.walk, places))  # also `Model.scale = 2`
    names = {one.id for one in stored if isinstance(one, ast.Name)}
    return {*names, *(name.partition(".")[0] for name in imported)}


def _of_file(asked: dict[str, Any]) -> Reference:
    """That of KernelBench's `Model`, or of kernelbot's `ref_kernel`."""
    names = _loaded(asked["file"], is_own=asked["is_own"])
    if {"ref_kernel", "generate_input"} <= {*names}:
        return _of_task(names, asked["test"])
    if not {"Model", "get_inputs"} <= {*names}:
        raise NoProductError("there is no class Model with get_inputs()")
    given = _examples(names["get_inputs"])
    init = names["get_init_inputs"]() if "get_init_inputs" in names else []
    model = names["Model"](*init)
    run = model if callable(model) else model.forward
    return Reference(run, _maker(given), [*map(_shape, given)], [*map(_kind, given)], init)


def _of_task(names: dict[str, Any], test: dict[str, int]) -> Reference:
    """That of kernelbot: of a tuple (a, b), (a, b, c), or (a, b, a_scale, b_scale, c)."""
    made = _inputs(names["generate_input"](**test))
    given, rest = made[: len(made) // 2 * 2], made[len(made) // 2 * 2 :]
    try:
        names["ref_kernel"]((*given, *rest))
    except ValueError:  # some take (a, b) apart, although (a, b, c) is made
        rest = []
    return Reference(
        lambda *inputs: names["ref_kernel"]((*inputs, *rest)), _maker(given),
        [*map(_shape, given)], [*map(_kind, given)], values=len(made),
    )  # fmt: skip


def _of_definition(asked: dict[str, Any]) -> Reference:
    names = _loaded(asked["reference"])
    if "run" not in names:
        raise NoProductError("it defines no function run")
    others = iter((11, 13, 17, 19, 23))
    axes = {name: value or next(others) for name, value in asked["axes"].items()}
    shapes = [tuple(axes[name] for name in shape) for shape in asked["shapes"]]
    return Reference(names["run"], _maker([]), shapes, asked["kinds"], result=asked["result"])


def _examples(get_inputs: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The inputs of a problem; if they are PyTorch's, without their memory."""
    with contextlib.suppress(Exception), sys.modules["torch"].device("meta"):
        return _inputs(get_inputs())
    return _inputs(get_inputs())  # something in it needs numbers


def _inputs(made: Any) -> Sequence[Any]:
    is_one = hasattr(made, "shape") or not isinstance(made, Iterable)
    given = [made] if is_one else [*made]
    if len(given) < 2:
        raise NoProductError(f"takes {len(given)} input{'s' * (not given)}, not two matrices")
    return given


def _shape(one: Any) -> tuple[int, ...]:
    if not hasattr(one, "shape"):
        raise NoProductError(f"takes a value of type {type(one).__name__}, not two matrices")
    return tuple(one.shape)


def _kind(one: Any) -> str:
    return str(one.dtype).removeprefix("torch.")


def _maker(given: Sequence[Any]) -> Callable[[Any, str], Any]:
    """What makes an input of an array of whole numbers: PyTorch's, or NumPy's if those are."""
    import ml_dtypes  # noqa: F401 - NumPy's names of narrow types
    import numpy

    torch = sys.modules.get("torch")
    if torch is None or isinstance(next(iter(given), None), numpy.ndarray):
        return lambda values, kind: values.astype(kind)
    return lambda values, kind: torch.from_numpy(values).to(getattr(torch, kind))


def _roles(kinds: Sequence[str]) -> list[str]:
    """What its inputs are: matrices of one type, and scales of those of 8 bits."""
    if unknown := {*kinds} - {*_EXACT}:
        raise NoProductError(f"takes {min(unknown)}; its inputs must be {', '.join(_EXACT)}")
    narrow = [kind in _EIGHT_BITS for kind in kinds]
    if (len(kinds), sum(narrow)) == (4, 2):
        matrices, scales = iter("AB"), iter(("scale_a", "scale_b"))
        return [next(matrices) if is_narrow else next(scales) for is_narrow in narrow]
    if len(kinds) != 2:
        raise NoProductError(f"takes {len(kinds)} input{'s' * (len(kinds) != 1)}, not two matrices")
    if kinds[0] != kinds[1]:
        raise NoProductError(f"takes matrices of two types, {' and '.join(kinds)}")
    return ["A", "B"]


def _tried(of: Reference, roles: Sequence[str]) -> tuple[str, str | None, str]:
    """The letters of the product, what has scales, and the type of the result; found at small
    sides, or else at its own."""
    sides = itertools.cycle(_SIDES)
    smaller = defaultdict(lambda: next(sides), {1: 1})
    small = [tuple(smaller[side] for side in shape) for shape in of.shapes]
    shapes = of.shapes if of.values or len(roles) > 2 else small
    try:
        return _named(of, roles, shapes)
    except Exception as error:  # it may insist on its own sides
        if shapes is of.shapes or isinstance(error, NoProductError):
            raise
    return _named(of, roles, of.shapes)


def _named(
    of: Reference, roles: Sequence[str], shapes: Sequence[Sequence[int]]
) -> tuple[str, str | None, str]:
    import numpy

    if sum(map(math.prod, shapes)) > _MOST_NUMBERS:
        raise NoProductError("does not run on small matrices")
    random = numpy.random.default_rng(1)
    exact = min(_EXACT[kind] for kind in of.kinds)
    sums = max(exact, 1 << 8) // max(map(max, shapes))
    most = max(1, min(_LARGEST_INPUT, exact, math.isqrt(sums)))
    values = {}
    for role, shape in zip(roles, shapes, strict=True):
        values[role] = random.integers(-most, most + 1, tuple(shape)).astype("float32")
        if role not in "AB":
            values[role] = numpy.exp2(values[role] % 4)
    inputs = [of.make(values[role], kind) for role, kind in zip(roles, of.kinds, strict=True)]
    returned = of.run(*inputs)
    results = [*returned.values()] if isinstance(returned, dict) else returned
    [returned, *more] = results if isinstance(results, list | tuple) else [results]
    if more or not hasattr(returned, "dtype"):
        what = f"{len(more) + 1} results" if more else f"a value of type {type(returned).__name__}"
        raise NoProductError(f"returns {what}, not one matrix")
    result = of.result or _kind(returned)
    if result not in _EXACT or result in _EIGHT_BITS:
        raise NoProductError(f"has a result of {result}; matbench judges those of 16 bits and more")
    C = numpy.asarray(returned.detach().double() if hasattr(returned, "detach") else returned, "f8")
    A, B, scales = values["A"].astype("float64"), values["B"].astype("float64"), None
    if len(roles) > 2:
        scales, A, B = _scaled(A, B, values["scale_a"], values["scale_b"])
    for transpose, expected in _products(A, B):
        # Only where the result's type has too few bits for it, it may be rounded.
        is_rounded = abs(expected) * (1 if scales is None else _EXACT[result]) > _EXACT[result]
        most_off = numpy.where(is_rounded, abs(expected) / _EXACT[result], 0)
        if expected.shape == C.shape and (abs(C - expected) <= most_off).all():
            return transpose, scales, result
    raise NoProductError("computes no product of two matrices")


def _products(A: Any, B: Any) -> Iterator[tuple[str, Any]]:
    """The products that these have, with the letters of each."""
    is_split = A.ndim in (3, 4) and B.ndim == 2
    if not is_split and (A.ndim != B.ndim or A.ndim not in (2, 3)):
        raise NoProductError(f"takes arrays of {A.ndim} and {B.ndim} dimensions, not two matrices")
    for transpose in ("NN", "NT") if is_split else ("NN", "NT", "TN", "TT"):
        a = A.swapaxes(-1, -2) if transpose[0] == "T" else A
        b = B.swapaxes(-1, -2) if transpose[1] == "T" else B
        if a.shape[-1] == b.shape[-2] and (b.ndim == 2 or a.shape[0] == b.shape[0]):
            yield transpose, a @ b


def _scaled(A: Any, B: Any, of_A: Any, of_B: Any) -> tuple[str, Any, Any]:
    """What has a factor of its own, and the matrices with their factors, of A and of a B that is
    N×K or, without blocks, K×N."""
    M, K = A.shape
    blocks, N = -(-K // _BLOCK), of_B.size
    if of_A.size == of_B.size == 1:
        return "matrix", A * of_A.reshape(()), B * of_B.reshape(())
    if (of_A.shape, of_B.shape) == ((M, blocks), (-(-len(B) // _BLOCK), blocks)):
        columns = of_B.repeat(_BLOCK, 0)[: len(B)]
        wide_A, wide_B = (one.repeat(_BLOCK, 1)[:, :K] for one in (of_A, columns))
        return "blocks", A * wide_A, B * wide_B
    if of_A.size == M and N in B.shape:
        shape = (-1, 1) if len(B) == N else (1, -1)
        return "rows", A * of_A.reshape(-1, 1), B * of_B.reshape(shape)
    told = f"has scales of {of_A.shape} and {of_B.shape}"
    raise NoProductError(f"{told}; matbench knows those of matrices, rows, and blocks of {_BLOCK}")


def _sides(shapes: Sequence[Sequence[Any]], transpose: str) -> tuple[Any, Any, Any]:
    """M, N and K, or the names of these."""
    A, B = shapes
    M, K = A[-2:] if transpose[0] == "N" else A[:-3:-1]
    return M, B[-1] if transpose[1] == "N" else B[-2], K


def _size(shapes: Sequence[Sequence[Any]], transpose: str, values: Mapping[Any, int]) -> str:
    """M×N×K, where rows of an A of more dimensions that meets one matrix all count."""
    M, N, K = (values.get(side, side) for side in _sides(shapes, transpose))
    A, B = shapes
    rows = [values.get(side, side) for side in A[:-2]] if len(A) > len(B) else []
    return f"{math.prod([M, *rows])}x{N}x{K}"


def _of_axes(asked: dict[str, Any], shapes: list[list[str]], transpose: str) -> dict[str, Any]:
    """The sizes of a definition, and what they must be: sides of one value, and equal ones."""
    names, values = dict(zip("MNK", _sides(shapes, transpose), strict=True)), asked["axes"]
    sides = "NK" if len(shapes[0]) > len(shapes[1]) else "MNK"  # or M is a product of axes
    where = [f"{side} == {values[names[side]]}" for side in sides if values[names[side]]]
    pairs = itertools.combinations((side for side in sides if not values[names[side]]), 2)
    where += [f"{one} == {other}" for one, other in pairs if names[one] == names[other]]
    sizes = [_size(shapes, transpose, one) for one in asked["workloads"]]
    table = {"sizes": ",".join(dict.fromkeys(sizes)), "launch": {"where": where}}
    if len(shapes[1]) == 3:
        batch = shapes[0][0]
        table["batch"] = [*dict.fromkeys(one[batch] for one in asked["workloads"])]
        where += [f"batch == {values[batch]}"] if values[batch] else []
    return table


if __name__ == "__main__":
    sys.path.insert(0, "")
    try:
        found = main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    except Exception as error:  # told in one line
        kind = "" if isinstance(error, NoProductError) else f"{type(error).__name__}: "
        raise NoProductError(kind + " ".join(str(error).split())) from None
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")  # it may print anything
