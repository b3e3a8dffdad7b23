"""Explains a wrong C to the kernel's author: how many elements, the first one, and the pattern."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from matbench import workloads
from matbench.measure import likeness
from matbench.measure.judge import (
    OUTSIDE_C,
    OUTSIDE_INPUTS,
    OUTSIDE_WORKSPACE,
    UNSHARED,
    UNWORKED,
    UNWRITTEN,
)
from matbench.measure.oracle import Array, Bound, Trial
from matbench.model import Case, Problem

Mask = npt.NDArray[np.bool_]


def wrong_elements(C: Array, trial: Trial, bound: Bound) -> Mask:
    """Where C is wrong, in the shape of the trial."""
    right: Mask
    if trial.exact is not None:
        right = trial.exact == C
    else:
        assert trial.R is not None
        assert trial.S is not None
        with np.errstate(invalid="ignore", over="ignore"):
            right = np.abs(C - trial.R) <= bound.of(trial.R, trial.S)
    return ~right


def explain(C: Array, trial: Trial, bound: Bound, case: Case) -> str:
    """One line: the count, the first wrong element, its expected value, and the pattern."""
    wrong = wrong_elements(C, trial, bound)
    count = int(wrong.sum())
    if count == 0:
        return "right when compared again: not deterministic"
    expected = trial.expected
    first = int(wrong.argmax())
    values = f"expected {_number(expected.flat[first])}, found {_number(C.flat[first])}"
    where = place(first, wrong.shape, case.problem)
    if where == "C":
        return "; ".join(filter(None, [f"C is wrong: {values}", _nan(C, wrong)]))
    parts = [f"{count:,} of {wrong.size:,} elements wrong", f"first {where}: {values}"]
    like = likeness.described(C, trial, bound, case)
    if like is not None:
        return "; ".join([*parts, like])
    return "; ".join(parts + patterns(C, expected, wrong, case.params))


def place(index: int, shape: tuple[int, ...], problem: Problem) -> str:
    """An element of a C of that shape: by row and column, or by its index in a vector."""
    if len(workloads.of(problem).dimensions) > 1:
        row, column = divmod(index, shape[1])
        return f"C[{row}, {column}]"
    return "C" if shape == (1, 1) else f"C[{index}]"


def _number(value: np.generic) -> str:
    return str(value) if isinstance(value, np.integer) else f"{value:.9g}"


def unwritten_parts(parts: Array) -> str:
    """How many blocks wrote no partial result, in words; empty if all did."""
    missing = int((parts.view(np.uint32) == UNWRITTEN).sum())
    return f"; {missing:,} of {parts.size:,} blocks wrote no partial result" if missing else ""


def patterns(
    C: Array,
    expected: Array,
    wrong: Mask,
    params: Mapping[str, int],
) -> list[str]:
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
    words = C.view(np.uint64) >> np.uint64(32) if C.dtype == np.float64 else C.view(np.uint32)
    bits = words[wrong & np.isnan(C)]
    said, told = [], 0
    for payload, origin in _ORIGINS.items():
        count = int((bits == payload).sum())
        told += count
        if count:
            said.append(f"{count:,} {origin}")
    if bits.size > told:
        said.append(f"{bits.size - told:,} NaN, as from out-of-bounds or uninitialised reads")
    return ", ".join(said) or None


def _rearranged(C: Array, expected: Array, wrong: Mask) -> str | None:
    """Right values in wrong places."""

    def near(found: Array, meant: Array, looked_at: Mask) -> bool:
        if not looked_at.any():
            return False
        if np.issubdtype(meant.dtype, np.integer):
            return bool((found == meant)[looked_at].mean() > 0.9)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(found - meant)[looked_at]
            return bool((error <= 1e-4 * np.abs(meant)[looked_at] + 1e-30).mean() > 0.9)

    if wrong.sum() < 3:
        return None
    rows, columns = expected.shape
    if rows == 1 or columns == 1:  # the transpose has the same elements
        found, meant, off = C.ravel(), expected.ravel(), wrong.ravel()
        if near(found[1:], meant[:-1], off[1:]):
            return "shifted by one, towards the end"
        if near(found[:-1], meant[1:], off[:-1]):
            return "shifted by one, towards the start"
        return "reversed" if near(found, meant[::-1], off) else None
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
        found, meant = C[wrong].astype(np.float64), expected[wrong].astype(np.float64)
        if not np.isfinite(found).all():
            return None
        if (found == found[0]).all():
            return f"all are {found[0]:.6g}"
        size = np.abs(meant).max()
        difference = found - meant
        if size and np.ptp(difference) <= 1e-5 * size and abs(difference.mean()) > 1e-5 * size:
            return f"each off by {difference.mean():+.6g}"
        ratio = found[meant != 0] / meant[meant != 0]
        if ratio.size and np.ptp(ratio) <= 1e-4 * abs(ratio.mean()) < abs(ratio.mean() - 1):
            return f"each multiplied by {ratio.mean():.6g}"
    return None


def _where(wrong: Mask, params: Mapping[str, int]) -> str | None:
    """The region: all, the last row or column, the edge beyond whole tiles, every n-th row."""
    rows, columns = wrong.shape
    if wrong.all():
        return "every element"
    across = "column" if rows > 1 else "element"
    in_rows: Mask = np.logical_or.reduce(wrong, axis=1)
    in_columns: Mask = np.logical_or.reduce(wrong, axis=0)
    if rows > 1 and columns > 1:
        last_row = not wrong[:-1].any()
        last_column = not wrong[:, :-1].any()
        both = not wrong[:-1, :-1].any()
        if last_row:
            return "only in the last row"
        if last_column:
            return "only in the last column"
        if both:
            return "only in the last row and the last column"
        for name, value in params.items():
            if value < 2:
                continue
            whole_rows, whole_columns = rows // value * value, columns // value * value
            inside = wrong[:whole_rows, :whole_columns]
            if inside.size and not inside.any():
                return f"only at the edge, beyond whole multiples of {name} = {value}"
        beyond_rows, beyond_columns = _edge(in_rows), _edge(in_columns)
        if beyond_rows and wrong[beyond_rows:].all() and not wrong[:beyond_rows].any():
            return f"all rows from {beyond_rows} on"
        columns_before = wrong[:, :beyond_columns]
        if beyond_columns and wrong[:, beyond_columns:].all() and not columns_before.any():
            return f"all columns from {beyond_columns} on"
    for axis, used in (("row", in_rows), (across, in_columns)):
        places = np.flatnonzero(used)
        if places.size > 2:
            steps = np.diff(places)
            step = int(np.gcd.reduce(steps))
            if step > 1 and (steps == step).all():
                return f"every {_ordinal(step)} {axis} from {places[0]} on"
    first_row, last_row_at = np.flatnonzero(in_rows)[[0, -1]]
    first_column, last_column_at = np.flatnonzero(in_columns)[[0, -1]]
    if (first_row, first_column) == (0, 0) and (last_row_at, last_column_at) == (
        rows - 1,
        columns - 1,
    ):
        return None
    if rows == 1:
        return f"within elements {first_column}–{last_column_at}"
    return f"within rows {first_row}–{last_row_at}, columns {first_column}–{last_column_at}"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 20 else last}"


def _edge(used: Mask) -> int | None:
    """Where the final run of True begins; None if the last is False."""
    if not used[-1]:
        return None
    clean = np.flatnonzero(~used)
    return int(clean[-1]) + 1 if clean.size else 0
