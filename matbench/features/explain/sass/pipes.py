"""Which part of a multiprocessor carries out an instruction, and how fast.

Rates are warp instructions per cycle of a multiprocessor. Sources:

- results per clock: *CUDA Programming Guide* 13.0, table "Throughput of Native Arithmetic
  Instructions", divided by 32, or by 64 if an instruction gives two results; for 12.0 the
  whitepaper *NVIDIA RTX Blackwell GPU Architecture*;
- four schedulers that each start one instruction per cycle: the whitepapers on A100, GA102, Ada,
  H100; multiplications of integers on half of the float32 lanes where there are 128 of these:
  *Nsight Compute, Kernel Profiling Guide*, section "Pipelines" (FMA heavy and lite);
- 128 bytes per cycle between a multiprocessor's L1 cache or shared memory and its registers:
  the same guide, and the measurements in docs/ladder.md; Jia et al. 2018 for Volta;
- two banks of registers with one read per cycle each: measured on 9.0 for docs/ladder.md, and
  published for Volta and Turing (Jia et al., *Dissecting the NVIDIA Turing T4 GPU*, 2019).
  For 10.0 and 12.0 taken to be the same;
- multiply-adds of tensor cores: `analysis/limits.py`.

Only those of 9.0 have been compared with measurements.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from matbench.features.explain.sass.effects import OPCODES, tensor_shape
from matbench.features.explain.sass.listing import Instruction

SCHEDULERS = 4


class Rates(NamedTuple):
    """Warp instructions per cycle and multiprocessor, by pipe."""

    fma: float
    imad: float
    alu: float
    fp64: float
    xu: float
    half: float


_SERVER = Rates(fma=4, imad=2, alu=2, fp64=2, xu=0.5, half=4)
_DESKTOP = Rates(fma=4, imad=2, alu=2, fp64=2 / 32, xu=0.5, half=2)
#: By compute capability. Others are not known, and nothing is predicted for them.
RATES: dict[tuple[int, int], Rates] = {
    (8, 0): Rates(fma=2, imad=2, alu=2, fp64=1, xu=0.5, half=4),
    (8, 6): _DESKTOP,
    (8, 9): _DESKTOP,
    (9, 0): _SERVER,
    (10, 0): _SERVER,
    (12, 0): _DESKTOP,
}

#: The precisions of tensor instructions by modifier, and without such a one.
_WIDE = ("float16", {"TF32": "tf32", "BF16": "bfloat16"})
_INTEGERS = (None, {"S8": "int8", "U8": "int8"})
_FP8 = (None, {"E4M3": "e4m3", "E5M2": "e5m2"})
_PRECISIONS: dict[str, tuple[str | None, dict[str, str]]] = {
    "DMMA": ("float64", {}), "HMMA": _WIDE, "HGMMA": _WIDE, "IMMA": _INTEGERS, "IGMMA": _INTEGERS,
    "QMMA": _FP8, "QGMMA": _FP8,
}  # fmt: skip
_CLASSES = {stem: name for name, stems in OPCODES["classes"].items() for stem in stems.split()}


def class_of(instruction: Instruction) -> str | None:
    """The class of an instruction; None if its opcode is not known."""
    stem = instruction.stem
    is_uniform = stem.startswith("U") and stem[1:] in _CLASSES
    return _CLASSES.get(stem, "uniform" if is_uniform else None)


def tensor_multiply_adds(instruction: Instruction) -> int | None:
    """Multiply-adds of one tensor instruction of a warp; None if its shape is not known.

    Instructions of a warpgroup (`HGMMA`) are carried out by four warps together.
    """
    shape = tensor_shape(instruction)
    return shape and math.prod(shape) // (4 if "GMMA" in instruction.stem else 1)


def tensor_precision(instruction: Instruction) -> str | None:
    """The precision of a tensor instruction's inputs, as in `Architecture.tensor_fma`."""
    usual, named = _PRECISIONS.get(instruction.stem, (None, {}))
    return next((named[name] for name in instruction.modifiers if name in named), usual)
