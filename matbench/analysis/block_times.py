"""The figures of a case's blocks, from the stamps of an instrumented launch.

Pure arithmetic. Ticks are compared only within one multiprocessor. On a GPU each multiprocessor's
tick counter has its own start, and `%globaltimer` is the clock that all share. On a CPU all compute
units read one clock, and it is not known which unit ran a block.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from matbench.errors import CaseError
from matbench.model import DeviceInfo
from matbench.records.outcome import BlockTimes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = TypeVar("Numbers", Ints, Floats)


class BlockSample(NamedTuple):
    """The stamps of one instrumented launch, a row per block: start and end in ticks, start and
    end in nanoseconds (0 if the device has no clock that all multiprocessors share), and the
    multiprocessor. Also the event times of that launch and of an empty one."""

    stamps: npt.NDArray[np.uint64]
    ticks_per_ns: float
    event_ns: float
    empty_ns: float
    perturbation: float


class Blocks(NamedTuple):
    """The blocks that have both stamps. Ticks count from the first start on the same
    multiprocessor (in `base`), nanoseconds from the first start of all. `unit` numbers the
    multiprocessors that ran any block, and `names` are their device numbers. If they are not
    `known`, because the device does not report them, all blocks are on one."""

    start: Ints
    end: Ints
    start_ns: Ints
    end_ns: Ints
    unit: Ints
    names: npt.NDArray[np.uint64]
    base: npt.NDArray[np.uint64]
    known: bool
    row: Ints
    unstamped: int


def read(stamps: npt.NDArray[np.uint64]) -> Blocks:
    whole = (stamps[:, 1] > 0) & (stamps[:, 1] >= stamps[:, 0])
    kept = stamps[whole]
    if not len(kept):
        raise CaseError(f"none of the {len(stamps):,} blocks has an end stamp")
    known = bool((kept[:, 2] > 0).all())
    names, unit = np.unique(kept[:, 4] if known else np.zeros_like(kept[:, 4]), return_inverse=True)
    base = np.full(len(names), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(base, unit, kept[:, 0])
    zero_ns = kept[:, 2].min()
    # Subtracted as integers: nanoseconds since 1970 do not fit in a float.
    return Blocks(
        start=(kept[:, 0] - base[unit]).astype(np.int64),
        end=(kept[:, 1] - base[unit]).astype(np.int64),
        start_ns=(kept[:, 2] - zero_ns).astype(np.int64),
        end_ns=(np.maximum(kept[:, 3], kept[:, 2]) - zero_ns).astype(np.int64),
        unit=unit.astype(np.int64),
        names=names,
        base=base,
        known=known,
        row=np.flatnonzero(whole),
        unstamped=len(stamps) - len(kept),
    )


def brief(sample: BlockSample, device: DeviceInfo, *, clock_is_sm: bool = False) -> BlockTimes:
    """The figures that a sweep shows for each case; `CaseError` if no block has both stamps.

    `clock_is_sm`: ticks are those of the SM clock, so that the sample also gives its frequency.
    """
    blocks = read(sample.stamps)
    units = max(device.limits["multiprocessors"], len(blocks.names))
    return BlockTimes(
        median_ns=float(np.median(blocks.end - blocks.start)) / sample.ticks_per_ns or None,
        imbalance=imbalance(blocks, units) if blocks.known else None,
        perturbation=sample.perturbation,
        sm_mhz=sample.ticks_per_ns * 1e3 if clock_is_sm else None,
    )


def last(ends: Numbers, unit: Ints) -> Numbers:
    """The last end on each multiprocessor; none is negative."""
    found: Numbers = np.zeros(int(unit.max()) + 1, ends.dtype)
    np.maximum.at(found, unit, ends)
    return found


def imbalance(blocks: Blocks, multiprocessors: int) -> float | None:
    """The longest busy time over the mean of all multiprocessors, minus 1."""
    order = np.lexsort((blocks.start, blocks.unit))
    unit = blocks.unit[order]
    # One axis for all multiprocessors: each one's times follow those of the one before.
    room = np.cumsum(last(blocks.end, blocks.unit) + 1)
    shift = np.concatenate([[0], room[:-1]])[unit]
    start, end = blocks.start[order] + shift, blocks.end[order] + shift
    reached = np.concatenate([[0], np.maximum.accumulate(end)[:-1]])
    busy = np.bincount(unit, weights=np.maximum(0, end - np.maximum(start, reached)))
    return float(busy.max() * multiprocessors / busy.sum() - 1) if busy.any() else None
