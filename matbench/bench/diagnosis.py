"""Explains a wrong C to the kernel's author: how many elements, the first one, and the pattern."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.bench import layout_recognition, wording
from matbench.bench.device_kernels import (
    OUTSIDE_C,
    OUTSIDE_INPUTS,
    OUTSIDE_WORKSPACE,
    UNSHARED,
    UNWORKED,
    UNWRITTEN,
)
from matbench.bench.layout_recognition import USUAL_BITS, kept, like_rounded
from matbench.model import Case, Problem
from matbench.workloads import oracle
from matbench.workloads.oracle import MOST_EXCESS, Array, Bound, Trial, bits_of_inputs

#: With fewer bits, errors are as large as those of other mistakes; with more, as in float32 sums.
_LEAST_BITS, _MOST_BITS = 7, 21
#: The largest error of rounding in units of the root mean square.
_SPREAD = 8
#: An error below this share of the terms' size may be one of rounding.
_SMALL = 1 / 32
#: From so many errors on, their size says how inputs were rounded.
_MANY = 64

Mask = npt.NDArray[np.bool_]


def wrong_elements(C: Array, trial: Trial, bound: Bound) -> Mask:
    """Where C is wrong, in the shape of the trial."""
    right: Mask
    if trial.exact is not None:
        right = trial.exact == C
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            right = np.abs(C - trial.expected) <= bound.of(trial)
    return ~right


def explain(C: Array, trial: Trial, bound: Bound, case: Case) -> str:
    """One line: the count, the first wrong element, its expected value, and the pattern."""
    wrong = wrong_elements(C, trial, bound)
    count = int(wrong.sum())
    multiple = _multiple(C, trial, bound)
    imprecise = _imprecise(C, trial, bound, case, is_small=multiple is not None)
    if count == 0:
        if imprecise is None:
            return "right when compared again: not deterministic"
        return f"no element is wrong alone, but all are together: {imprecise}"
    expected = trial.expected
    first = int(wrong.argmax())
    values = f"expected {_number(expected.flat[first])}, found {_number(C.flat[first])}"
    where = place(first, wrong.shape, case.problem)
    if where == "C":
        return "; ".join(filter(None, [f"C is wrong: {values}", _nan(C, wrong)]))
    parts = [f"{count:,} of {wrong.size:,} elements wrong", f"first {where}: {values}"]
    parts += [multiple] if multiple else []
    like = layout_recognition.described(C, trial, bound, case)
    if like is not None:
        return "; ".join([*parts, like])
    if imprecise is not None:
        return "; ".join([*parts, imprecise])
    return "; ".join(parts + patterns(C, expected, wrong, case.params))


def place(index: int, shape: tuple[int, ...], problem: Problem) -> str:
    """An element of a C of that shape: by row and column, or by its index in a vector."""
    if len(workloads.workload_of(problem).dimensions) > 1:
        row, column = divmod(index, shape[1])
        return f"C[{row}, {column}]"
    return "C" if shape == (1, 1) else f"C[{index}]"


def _number(value: np.generic) -> str:
    return str(value) if isinstance(value, np.integer) else f"{value:.9g}"


def unwritten_parts(parts: Array) -> str:
    """How many blocks wrote no partial result, in words; empty if all did."""
    missing = int((parts.view(np.uint32) == UNWRITTEN).sum())
    return f"; {missing:,} of {parts.size:,} blocks wrote no partial result" if missing else ""


def patterns(C: Array, expected: Array, wrong: Mask, params: Mapping[str, int]) -> list[str]:
    """The patterns of the wrong elements, in words; the most informative first."""
    return [
        text
        for text in (
            _nan(C, wrong),
            _rearranged(C, expected, wrong),
            _offset(C, expected, wrong),
            _where(wrong, params),
        )
        if text
    ]


def _multiple(C: Array, trial: Trial, bound: Bound) -> str | None:
    """The largest error as a multiple of the bound, if all are as small as those of rounding."""
    if trial.R is None or trial.S is None:
        return None
    with np.errstate(all="ignore"):
        errors, allowed = np.abs(C - trial.R), bound.of(trial)
        if not (errors <= _SMALL * trial.S).all():
            return None
        most = float((errors / allowed)[allowed > 0].max(initial=0.0))
    return f"largest error {most:{'.3g' if most < 1000 else ',.0f'}} × the bound"


def _imprecise(C: Array, trial: Trial, bound: Bound, case: Case, *, is_small: bool) -> str | None:
    """What sums or inputs of fewer bits would explain: errors that random signs reveal, or those
    with which C would be right if that were declared."""
    if trial.R is None:
        return None
    if trial.typical is None:
        return _of_lower_precision(C, trial, case) if is_small else None
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
    bits = round(bits_of_inputs(error))
    if not _LEAST_BITS <= bits <= _MOST_BITS:
        return None
    return like_rounded(bits, case)


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
    for bits, storage in USUAL_BITS.items():
        if (kept(C, bits) == C).all():
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
            alike = (bits for bits in USUAL_BITS if abs(-np.log2(found) - bits) < 1)
            return next((like_rounded(bits, case) for bits in alike), None)
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
    said, explained = [], 0
    for payload, origin in _ORIGINS.items():
        count = int((bits == payload).sum())
        explained += count
        if count:
            said.append(f"{count:,} {origin}")
    if bits.size > explained:
        said.append(f"{bits.size - explained:,} NaN, as from out-of-bounds or uninitialised reads")
    return ", ".join(said) or None


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

    if wrong.sum() < 3:
        return None
    rows, columns = expected.shape
    if rows == 1 or columns == 1:  # the transpose has the same elements
        actual, meant, off = C.ravel(), expected.ravel(), wrong.ravel()
        if near(actual[1:], meant[:-1], off[1:]):
            return "shifted by one, towards the end"
        if near(actual[:-1], meant[1:], off[:-1]):
            return "shifted by one, towards the start"
        return "reversed" if near(actual, meant[::-1], off) else None
    if rows == columns and near(C, expected.T, wrong):
        return "transposed"
    if near(C, np.ascontiguousarray(expected.T).reshape(rows, columns), wrong):
        return "transposed (stored in column-major order)"
    return None


def _offset(C: Array, expected: Array, wrong: Mask) -> str | None:
    """One number that is added to every wrong element, or multiplies it."""
    if wrong.sum() < 3:
        return None
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


def _where(wrong: Mask, params: Mapping[str, int]) -> str | None:
    """The region: all, the edge, all lines from one on, part of every period, or what is within."""
    if wrong.all():
        return "every element"
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    is_vector = 1 in wrong.shape
    return (
        (None if is_vector else _edge(wrong, params))
        or _periodic(wrong)
        or ((right := _periodic(~wrong)) and f"right only in {right}")
        or _within(rows, columns, wrong.shape)
    )


def _edge(wrong: Mask, params: Mapping[str, int]) -> str | None:
    """The last lines of a matrix, those beyond whole tiles, or all from one on."""
    rows, columns = wrong.shape
    insides = {
        "only in the last row": wrong[:-1],
        "only in the last column": wrong[:, :-1],
        "only in the last row and the last column": wrong[:-1, :-1],
        **{
            f"only at the edge, beyond whole multiples of {name} = {value}": (
                wrong[: rows // value * value, : columns // value * value]
            )
            for name, value in params.items()
            if value > 1
        },
    }
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
    names = ("row", "column" if len(elements) > 1 else "element")
    lines = (
        wording.periodic(np.asarray(elements.any(axis=axis)), name)
        for axis, name in zip((1, 0), names, strict=True)
    )
    return ", ".join(filter(None, lines)) or None


def _within(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], shape: tuple[int, ...]
) -> str | None:
    """The smallest rectangle, unless it is all of C."""
    if (rows[0], columns[0]) == (0, 0) and (rows[-1] + 1, columns[-1] + 1) == shape:
        return None
    if shape[0] == 1:
        return f"within elements {columns[0]}–{columns[-1]}"
    return f"within rows {rows[0]}–{rows[-1]}, columns {columns[0]}–{columns[-1]}"
