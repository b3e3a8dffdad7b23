"""What the checks of other evaluators admit, and which honest sums they refuse.

Each rule compares a product with a reference: |C − R| ≤ atol + rtol·|R|. Here C is computed with
NumPy as a submission might: from inputs that are rounded, without some terms, or in float32 one
term after the other. R is the float64 product in the type of the result; for kernelbot, whose
reference adds in float32, too, the sums in the opposite order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from tabulate import tabulate

#: The most elements of A and of B, which have as many rows, and columns.
MOST = 1 << 25
Array = Any


class Rule(NamedTuple):
    """What an evaluator takes: its tolerances, the share of elements that must keep them, the type
    of inputs and results, and what draws inputs."""

    name: str
    atol: float
    rtol: float
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    kind: type = np.float32
    share: float = 1.0


def uniform(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.random(shape)


def signed(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.uniform(-1, 1, shape)


def to_ten(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.uniform(-10, 10, shape)


def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.standard_normal(shape)


def tf32(values: Array) -> Array:
    """Ten bits of the fraction, to the nearest."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def rounded(kind: type) -> Callable[[Array], Array]:
    return lambda values: values.astype(kind).astype(np.float32)


TF32, BFLOAT16, E4M3, E5M2 = (f"inputs of {kind}" for kind in ("TF32", "bfloat16", "e4m3", "e5m2"))
ROUNDINGS = {
    TF32: tf32,
    BFLOAT16: rounded(ml_dtypes.bfloat16),
    E4M3: rounded(ml_dtypes.float8_e4m3fn),
    E5M2: rounded(ml_dtypes.float8_e5m2),
}
LOST = {"1 term lost": 1, "4 terms lost": 4}
IN_ORDER = "float32 sums in order"

KERNELBENCH = Rule("KernelBench, float32", 1e-4, 1e-4, uniform)
KERNELBENCH_16 = Rule("KernelBench, 16 bits", 1e-2, 1e-2, uniform, np.float16)
KERNELBOT = Rule("kernelbot, matmul_v2", 1e-8, 1e-5, uniform, np.float16)
LEETGPU = Rule("LeetGPU", 1e-4, 1e-4, to_ten)
TENSARA = Rule("Tensara", 1e-3, 1e-4, signed)
SOL = Rule("SOL-ExecBench", 1e-2, 1e-2, normal, share=0.99)
CASES = [
    *((KERNELBENCH, K, what) for K in (4096, 524288) for what in (TF32, BFLOAT16, "1 term lost")),
    *((KERNELBENCH_16, 4096, what) for what in (E4M3, E5M2, "4 terms lost")),
    *((SOL, 4096, what) for what in (TF32, BFLOAT16)),
    (TENSARA, 4096, TF32),
    (KERNELBOT, 256, IN_ORDER),
    (LEETGPU, 6144, IN_ORDER),
]  # fmt: skip


def in_order(A: Array, B: Array) -> Array:
    """Sums in float32, one term after the other."""
    total = np.zeros((len(A), B.shape[1]), np.float32)
    for k in range(A.shape[1]):
        total += np.outer(A[:, k], B[k])
    return total


def row(rule: Rule, K: int, what: str) -> dict[str, Any]:
    """How many elements of a product of this kind the rule refuses."""
    random, side = np.random.default_rng(1), min(256, MOST // K)
    A, B = (rule.draw(random, shape).astype(rule.kind) for shape in ((side, K), (K, side)))
    A, B = A.astype(np.float32), B.astype(np.float32)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    reference = in_order(A[:, ::-1], B[::-1]) if rule is KERNELBOT else exact
    if what == IN_ORDER:
        C = in_order(A, B)
    elif what in LOST:
        C = A[:, LOST[what] :].astype(np.float64) @ B[LOST[what] :].astype(np.float64)
    else:
        C = ROUNDINGS[what](A).astype(np.float64) @ ROUNDINGS[what](B).astype(np.float64)
    C, R = (one.astype(rule.kind).astype(np.float64) for one in (C, reference))
    refused = ~(abs(C - R) <= rule.atol + rule.rtol * abs(R))
    passes = refused.mean() <= 1 - rule.share
    return {
        "rule": rule.name, "inputs": rule.draw.__name__, "K": K, "submission": what,
        "elements refused": f"{refused.sum():,} of {refused.size:,}",
        "it": "passes" if passes else "is refused",
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table there, too")
    output = parser.parse_args().output
    table = tabulate([row(*case) for case in CASES], headers="keys", tablefmt="simple", intfmt=",")
    print(table)
    if output is not None:
        output.write_text(f"{table}\n", encoding="utf-8")
