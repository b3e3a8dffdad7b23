"""Explains a wrong C to the kernel's author: how many elements, the first one, and the pattern."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import get_args

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.bench.device_kernels import (
    OUTSIDE_C,
    OUTSIDE_INPUTS,
    OUTSIDE_WORKSPACE,
    UNSHARED,
    UNWORKED,
    UNWRITTEN,
)
from matbench.model import Case, Layout, Placing, Problem, Transpose
from matbench.workloads import oracle
from matbench.workloads.oracle import MOST_EXCESS, Array, Bound, Float64, Trial

#: With fewer bits, errors are as large as those of other mistakes; with more, as in float32 sums.
_LEAST_BITS, _MOST_BITS = 7, 21
#: The largest error of rounding in units of the root mean square.
_SPREAD = 8
#: An error below this share of the terms' size may be one of rounding.
_SMALL = 1 / 32
#: From so many errors on, their size says how inputs were rounded.
_MANY = 64
#: Larger products are not tried, because that would take too long.
MOST_OPERATIONS = 2**30
#: How often each is added is only found out for so many terms.
_MOST_TERMS = 2048
#: The bits of significands of 16 bits, and what names float16.
_TF32_BITS = 11
_USUAL_BITS = {_TF32_BITS: "float16", 8: "bfloat16"}
_HALF = re.compile("half|f(?:loat|p)?16")
#: How to get float32 from libraries whose default is TF32.
_EXACT = {
    "torch": (
        'pass `input_precision="ieee"` to `tl.dot`, or set '
        "`torch.backends.cuda.matmul.allow_tf32 = False`"
    ),
    "jax": 'pass `precision="highest"`',
}
_NAMES = {"NN": "A·B", "NT": "A·Bᵀ", "TN": "Aᵀ·B", "TT": "Aᵀ·Bᵀ"}

Mask = npt.NDArray[np.bool_]


def wrong_elements(C: Array, trial: Trial, bound: Bound) -> Mask:
    """Where C is wrong, in the shape of the trial."""
    if trial.exact is not None:
        return np.asarray(trial.exact != C)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(~(np.abs(C - trial.expected) <= bound.of(trial)))


def explain(C: Array, trial: Trial, bound: Bound, case: Case) -> str:
    """One line: the count, the first wrong element, its expected value, and the pattern."""
    wrong = wrong_elements(C, trial, bound)
    count = int(wrong.sum())
    if count == 0:
        imprecise = _imprecise(C, trial, bound, case)
        if imprecise is None:
            return "right when compared again: not deterministic"
        return f"no element is wrong alone, but all are together: {imprecise}"
    expected = trial.expected
    first = int(wrong.argmax())
    values = f"expected {_number(expected.flat[first])}, found {_number(C.flat[first])}"
    where = place(first, wrong.shape, case.problem)
    if where == "C":
        return "; ".join(filter(None, [f"C is wrong: {values}", _nan(C, wrong)]))
    number = f"{count:,} of {wrong.size:,} elements wrong; first {where}: {values}"
    multiple, like = _multiple(C, trial, bound), likeness(C, trial, bound, case)
    said = patterns(C, expected, wrong, case.params) if like is None else [like]
    return "; ".join(filter(None, (number, multiple, *said)))


def likeness(C: Array, trial: Trial, bound: Bound, case: Case) -> str | None:
    """What all of a wrong C is, or what its errors are like, in words; None if that is unknown."""
    return _recognised(C, trial, bound, case) or _imprecise(C, trial, bound, case)


def place(index: int, shape: tuple[int, ...], problem: Problem) -> str:
    """An element of a C of that shape: by row and column, or by its index in a vector."""
    if len(workloads.workload_of(problem).dimensions) > 1:
        row, column = divmod(index, shape[1])
        return f"C[{row}, {column}]"
    return "C" if shape == (1, 1) else f"C[{index}]"


def _number(value: np.generic) -> str:
    return str(value) if isinstance(value, np.integer) else f"{value:.9g}"


def patterns(C: Array, expected: Array, wrong: Mask, params: Mapping[str, int]) -> list[str]:
    """The patterns of the wrong elements, in words; the most informative first."""
    said = [_nan(C, wrong)]
    if wrong.sum() > 2:
        said += [_rearranged(C, expected, wrong), _offset(C, expected, wrong)]
    return [*filter(None, (*said, region(wrong, params)))]


def _multiple(C: Array, trial: Trial, bound: Bound) -> str | None:
    """The largest error as a multiple of the bound, if all are as small as those of rounding."""
    if trial.R is None or trial.S is None:
        return None
    with np.errstate(all="ignore"):
        errors, allowed = np.abs(C - trial.R), bound.of(trial)
        if not allowed.any() or not (errors <= _SMALL * trial.S).all():
            return None
        most = float((errors / allowed)[allowed > 0].max(initial=0.0))
    return f"largest error {most:{'.3g' if most < 1000 else ',.0f'}} × the bound"


def _imprecise(C: Array, trial: Trial, bound: Bound, case: Case) -> str | None:
    """What sums or inputs of fewer bits would explain: errors that random signs reveal, or those
    with which C would be right if that were declared."""
    if trial.R is None:
        return None
    if trial.typical is None:
        return _of_lower_precision(C, trial, case) if _multiple(C, trial, bound) else None
    T, dense = trial.typical.T, trial.typical.dense
    together = bound.excess(C, trial) > MOST_EXCESS
    looked_at = (dense if together else np.isfinite(T) & ~dense) & (T > 0)
    if not looked_at.any():
        return None
    with np.errstate(all="ignore"):
        errors = (np.abs(C - trial.R) / T)[looked_at]
        error = float(np.sqrt(np.mean(errors**2)))
    if not (0 < error < 1) or errors.max() > _SPREAD * error:
        return None
    # Of inputs of b bits it is about 0.47·2^−b, whatever K: errors of sums grow with √K.
    bits = round(-float(np.log2(error / 0.47)))
    return _like_rounded(bits, case) if _LEAST_BITS <= bits <= _MOST_BITS else None


def _of_lower_precision(C: Array, trial: Trial, case: Case) -> str | None:
    """Whether C is as exact as float32 sums, or all errors are those of inputs rounded, or
    truncated, to usual bits."""
    kernel = case.kernel
    if kernel.contract.sums_in == "float64":
        claimed = msgspec.structs.replace(kernel, accumulator="float32")
        if not wrong_elements(C, trial, oracle.bound(claimed, case.problem)).any():
            return 'as exact as float32 sums: declare `accumulator = "float32"`'
    if kernel.precision != "float32" or len(trial.inputs) != 2 or C.size < _MANY:
        return None
    for bits, storage in _USUAL_BITS.items():
        if (_kept(C, bits) == C).all():
            return f"all of C has only {bits} bits, as if it were {storage}"
    A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
    R, S = trial.sums
    with np.errstate(all="ignore"):
        T = np.sqrt((A**2).sum(axis=1)[:, None] * (B**2).sum(axis=0) / A.shape[1])
        errors = (C - R) / T
        error = float(np.sqrt(np.mean(errors**2)))
        shares = (C - R) / S
        # Truncating both inputs to b bits takes away about 1.33·2^−b of a sum.
        bias, spread = abs(float(np.mean(shares))) / 1.33, float(np.std(shares))
        found = bias if spread < bias / 4 else error / 0.47 if bias < 2 * spread else 0.0
        if found > 0 and np.abs(errors).max() <= _SPREAD * error:
            alike = (bits for bits in _USUAL_BITS if abs(-np.log2(found) - bits) < 1)
            return next((_like_rounded(bits, case) for bits in alike), None)
    return None


_ORIGINS = {
    UNWRITTEN: "never written (or added to an unwritten value)",
    OUTSIDE_INPUTS: "NaN read from outside A or B",
    OUTSIDE_C: "NaN read from outside C",
    UNSHARED: "NaN read from uninitialised shared memory",
    UNWORKED: "NaN read from the workspace, which was not written before",
    OUTSIDE_WORKSPACE: "NaN read from outside the workspace",
}


def _nan(C: Array, wrong: Mask) -> str | None:
    """Where NaNs came from, as far as their payloads show it."""
    words = C.view(np.uint64) >> np.uint64(32) if C.itemsize == 8 else C.view(np.uint32)
    bits = words[wrong & np.isnan(C)]
    counts = {origin: int((bits == payload).sum()) for payload, origin in _ORIGINS.items()}
    others = bits.size - sum(counts.values())
    counts["NaN, as from out-of-bounds or uninitialised reads"] = others
    return ", ".join(f"{count:,} {origin}" for origin, count in counts.items() if count) or None


def _rearranged(C: Array, expected: Array, wrong: Mask) -> str | None:
    """Right values in wrong places."""

    def near(actual: Array, meant: Array, looked_at: Mask) -> bool:
        if not looked_at.any():
            return False
        if np.issubdtype(meant.dtype, np.integer):
            return bool((actual == meant)[looked_at].mean() > 0.9)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(actual - meant)[looked_at]
            return bool((error <= 1e-4 * np.abs(meant)[looked_at] + 1e-30).mean() > 0.9)

    rows, columns = expected.shape
    if rows == 1 or columns == 1:  # the transpose has the same elements
        actual, meant, off = C.ravel(), expected.ravel(), wrong.ravel()
        if near(actual[1:], meant[:-1], off[1:]):
            return "shifted by one, towards the end"
        if near(actual[:-1], meant[1:], off[:-1]):
            return "shifted by one, towards the start"
        return "reversed" if near(actual, meant[::-1], off) else None
    if not near(C, expected.T.reshape(rows, columns), wrong):
        return None
    return "transposed" if rows == columns else "transposed (stored in column-major order)"


def _offset(C: Array, expected: Array, wrong: Mask) -> str | None:
    """One number that is added to every wrong element, or multiplies it."""
    with np.errstate(all="ignore"):
        actual, meant = C[wrong].astype(np.float64), expected[wrong].astype(np.float64)
        if not np.isfinite(actual).all():
            return None
        if (actual == actual[0]).all():
            return f"all are {actual[0]:.6g}"
        size = np.abs(meant).max()
        difference = actual - meant
        if size and np.ptp(difference) <= 1e-5 * size and abs(difference.mean()) > 1e-5 * size:
            return f"each off by {difference.mean():+.6g}"
        ratio = actual[meant != 0] / meant[meant != 0]
        if ratio.size and np.ptp(ratio) <= 1e-4 * abs(ratio.mean()) < abs(ratio.mean() - 1):
            return f"each multiplied by {ratio.mean():.6g}"
    return None


def region(wrong: Mask, params: Mapping[str, int]) -> str | None:
    """The region: all, the edge, all lines from one on, part of every period, or what is within."""
    if wrong.all():
        return "every element"
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    found = (
        (None if 1 in wrong.shape else _edge(wrong, params))
        or _periodic(wrong)
        or ((right := _periodic(~wrong)) and f"right only in {right}")
    )
    ends = (rows[0], columns[0], rows[-1] + 1, columns[-1] + 1)
    if found or ends == (0, 0, *wrong.shape):
        return found
    if wrong.shape[0] == 1:
        return f"within {_span('element', columns)}"
    return f"within {_span('row', rows)}, {_span('column', columns)}"


def _edge(wrong: Mask, params: Mapping[str, int]) -> str | None:
    """The last lines of a matrix, those beyond whole tiles, or all from one on."""
    rows, columns = wrong.shape
    insides = {
        "only in the last row": wrong[:-1],
        "only in the last column": wrong[:, :-1],
        "only in the last row and the last column": wrong[:-1, :-1],
    }
    for name, value in params.items():
        if value > 1:
            text = f"only at the edge, beyond whole multiples of {name} = {value}"
            insides[text] = wrong[: rows // value * value, : columns // value * value]
    for text, inside in insides.items():
        if inside.size and not inside.any():
            return text
    for name, lines in (("rows", wrong), ("columns", wrong.T)):
        first = int(lines.any(axis=1).argmax())
        if lines[first:].all():
            return f"all {name} from {first} on"
    return None


def _periodic(elements: Mask) -> str | None:
    """The rows and columns of each period that they lie in."""
    rows = _repeated(np.asarray(elements.any(axis=1)), "row")
    name = "column" if len(elements) > 1 else "element"
    columns = _repeated(np.asarray(elements.any(axis=0)), name)
    return ", ".join(filter(None, (rows, columns))) or None


# -- C as another product, or as what usual mistakes lead to ---------------------------------------


def _recognised(C: Array, trial: Trial, bound: Bound, case: Case) -> str | None:
    """What C is, in words; None if it is not recognised."""
    problem = case.problem
    is_small = problem.M * problem.N * problem.K <= MOST_OPERATIONS
    if problem.workload != "matmul" or not is_small or trial.S is None or not np.isfinite(C).all():
        return None
    R, S = trial.sums
    for text, actual, wanted in _candidates(C, trial, case):
        if actual.shape != wanted.shape:
            continue
        # All of C is that, within the error bound for terms of any sign, and far nearer to it than
        # to what is right.
        with np.errstate(all="ignore"):
            errors, sizes = np.abs(actual - wanted), np.full_like(wanted, np.abs(S).max())
            is_near = errors.max() <= np.abs(actual - R).max() / 4
            if is_near and (errors <= bound.allowed(wanted, sizes)).all():
                return text
    return None


def _candidates(C: Array, trial: Trial, case: Case) -> Iterator[tuple[str, Array, Float64]]:
    """Descriptions of what C may be, with C as it would be read then, and its expected value."""
    A, B = (matrix.astype(np.float64) for matrix in trial.inputs)
    alpha, beta = case.problem.alpha, case.problem.beta
    AB = A @ B
    added = np.zeros_like(AB) if trial.C is None else trial.C.astype(np.float64)
    if alpha != 1:
        yield "as if alpha were 1", C, AB + beta * added
    if beta != 0:
        yield "beta·C is not added", C, alpha * AB
        yield "as if beta were 1", C, alpha * AB + added
    elif case.kernel.reads:
        yield "C is added, as if beta were 1", C, alpha * AB + added
    is_float32 = case.kernel.contract.storage == case.kernel.precision == "float32"
    rounded = _rounded(A, B, case) if is_float32 and trial.typical is None else ()
    of_terms = _of_terms((C - beta * added) / alpha, A, B) if alpha else ()
    for text, a, b in (*_mistakes(A, B), *rounded, *of_terms):
        yield text, C, alpha * (a @ b) + beta * added
    stored, seen = case.kernel.placing, set()
    for layout, transpose in product(get_args(Layout), get_args(Transpose)):
        other = Placing(layout, transpose)
        if (layout, transpose) == (stored.layout, stored.transpose):
            continue
        a, b = (_read(X, name, stored, other) for X, name in ((A, "A"), (B, "B")))
        if np.array_equal(a, A) and np.array_equal(b, B):
            continue  # only C's layout differs: it is transposed, which is reported elsewhere
        c = _read(C, "C", stored, other)
        wanted = alpha * (a @ b) + beta * _read(added, "C", stored, other)
        key = c.tobytes(), wanted.tobytes()
        if key not in seen:
            seen.add(key)
            yield _words(stored, other), c, wanted


def _mistakes(A: Float64, B: Float64) -> Iterator[tuple[str, Float64, Float64]]:
    """Usual mistakes, with the operands as they have them."""
    yield "it leaves out the last term of K", A[:, :-1], B[:-1]
    yield "it leaves out the first term of K", A[:, 1:], B[1:]
    for tile in (8, 16, 32):  # those at an edge filled up with zeros
        a, b = (np.pad(X, [(0, -side % tile) for side in X.shape]) for X in (A, B))
        said = "it swaps the indices of {} in tiles of {}×{}"  # a tile alone is transposed
        if max(A.shape) > tile:
            yield said.format("A", tile, tile), _turned(a, tile)[: len(A)], b[:, : B.shape[1]]
        if max(B.shape) > tile:
            yield said.format("B", tile, tile), a[: len(A)], _turned(b, tile)[:, : B.shape[1]]


def _rounded(A: Float64, B: Float64, case: Case) -> Iterator[tuple[str, Float64, Float64]]:
    """Operands rounded, or truncated, to usual bits."""
    for bits, whole in product(_USUAL_BITS, (np.rint, np.trunc)):
        yield _like_rounded(bits, case, exactly=True), _kept(A, bits, whole), _kept(B, bits, whole)


def _kept(matrix: Array, bits: int, made_whole: np.ufunc = np.rint) -> Float64:
    """Numbers of which so many bits of the significand are kept."""
    significands, exponents = np.frexp(matrix.astype(np.float64))
    numbers: Float64 = np.ldexp(made_whole(np.ldexp(significands, bits)), exponents - bits)
    return numbers


def _like_rounded(bits: int, case: Case, *, exactly: bool = False) -> str:
    """What errors say that are as large as with inputs of so many bits, or `exactly` those."""
    how, source = _EXACT.get(case.kernel.arrays), case.kernel.source.lower()
    if how is not None and abs(bits - _TF32_BITS) <= 1:
        return f'as exact as TF32 inputs: declare `precision = "tf32"`, or {how}'
    precision = "tf32" if bits > 9 else "bfloat16"
    if precision == "tf32" not in source and _HALF.search(source):
        precision = "float16"
    declared = f'declare `precision = "{precision}"`'
    if exactly:
        inputs = "float16 inputs" if precision == "float16" else f"inputs of {bits} bits"
        return f"as exact as {inputs}: {declared}"
    claim = f"if they are, {declared}"
    if bits >= 14:
        claim = "if its inputs are split, declare `error_constant`"
    return f"errors are as large as with inputs rounded to about {bits} bits: {claim}"


def _of_terms(C: Array, A: Float64, B: Float64) -> Iterator[tuple[str, Float64, Float64]]:
    """How often each term of K is in C, by least squares, if that is a whole number."""
    K = A.shape[1]
    if not 1 < K <= _MOST_TERMS or C.size < K:
        return
    with contextlib.suppress(np.linalg.LinAlgError):
        whole = np.rint(np.linalg.solve((A.T @ A) * (B @ B.T), (A.T @ C * B).sum(axis=1)))
        said = []
        if not whole.any():  # C is 0
            return
        for many in np.unique(whole[whole != 1]):
            member = whole == many
            terms = _run(member, "term") or _repeated(member, "term") or f"{member.sum()} terms"
            twice = "twice" if many == 2 else f"{many:g} times"
            said.append(f"adds {terms} {twice}" if many else f"leaves out {terms}")
        yield f"of K, it {' and '.join(said)}", A * whole, B


def _turned(matrix: Float64, tile: int) -> Float64:
    """A matrix with each of its square tiles transposed."""
    rows, columns = (side // tile for side in matrix.shape)
    turned: Float64 = matrix.reshape(rows, tile, columns, tile).transpose(0, 3, 2, 1)
    return turned.reshape(matrix.shape)


def _read(matrix: Array, name: str, stored: Placing, other: Placing) -> Array:
    """A matrix stored in the layout `stored`, read as if it were in the layout `other`."""
    place, meant = (placing.place(name, *matrix.shape) for placing in (stored, other))
    memory = np.ascontiguousarray(matrix if place.column_step == 1 else matrix.T).ravel()
    by_rows = meant.column_step == 1
    result: Array = memory.reshape(matrix.shape if by_rows else matrix.shape[::-1])
    return result if by_rows else result.T


def _words(stored: Placing, other: Placing) -> str:
    """The front matter that fits it; of another transpose alone also the mistake that it may be."""
    named = [key for key in ("layout", "transpose") if getattr(other, key) != getattr(stored, key)]
    keys = [f'{key} = "{getattr(other, key)}"' for key in named]
    by = ", column-major" if other.layout == "column-major" else ""
    pairs = zip("AB", stored.transpose, other.transpose, strict=True)
    turned = [name for name, before, after in pairs if before != after]
    swapped = f", or the indices of {' and '.join(turned)} are swapped"
    swapped = swapped if other.layout == stored.layout else ""
    return f"it is {_NAMES[other.transpose]}{by}: {' and '.join(keys)}{swapped}"


# -- which rows, columns or terms something is about -----------------------------------------------


def _run(member: Mask, name: str) -> str | None:
    """`rows 2–7`, if these are all."""
    places = np.flatnonzero(member)
    if places.size == 0 or places[-1] - places[0] + 1 != places.size:
        return None
    return _span(name, places)


def _span(name: str, places: npt.NDArray[np.int_]) -> str:
    """From the first to the last."""
    first, last = places[0], places[-1]
    return f"{name} {first}" if first == last else f"{name}s {first}–{last}"


def _repeated(member: Mask, name: str) -> str | None:
    """`every 3rd row from 1 on`, or `rows 2–7 of every 8`; the last ones may be cut off."""
    starts, ends = np.flatnonzero(np.diff(member, prepend=False, append=False)).reshape(-1, 2).T
    period = int(np.diff(starts).min(initial=member.size))
    first = np.resize(member[:period], member.size)
    if starts.size < 2 or starts[0] >= period or (first != member).any():
        return None
    if ends[0] - starts[0] == 1 < starts.size - 1:
        suffix = {1: "st", 2: "nd", 3: "rd"}.get(period % 10, "th")
        suffix = "th" if 10 < period % 100 < 20 else suffix
        return f"every {period}{suffix} {name} from {starts[0]} on"
    return f"{_run(member[:period], name)} of every {period}"
