"""The judge of judges: results that are honest or not, held against published rules and `verify`.

Each rule draws its own inputs, as it was published, for which float32 sums and mistakes are
computed with NumPy. Its reference is the float64 product in the type of the result: no submission
is nearer, which favours the rule. `matbench.verify` then judges the same arrays, and those that it
is best given.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from submission_tolerances import in_order, normal, signed, to_ten, uniform
from tabulate import tabulate

import matbench

Array = Any
Draw = Literal["uniform", "signed", "to_ten", "normal"]
DRAWS: dict[Draw, Callable[..., Array]] = {
    "uniform": uniform, "signed": signed, "to_ten": to_ten, "normal": normal
}  # fmt: skip
#: Rows and columns of C, and how often each result is judged, with other inputs each time.
SIDE, DRAWN = 256, 2
#: Bits to which both operands are rounded, and how many of K terms are lost.
BITS, LOST = (*range(4, 8, 2), *range(8, 19)), (1, 4, 64)


class Rule(msgspec.Struct, frozen=True):
    """A rule: |C − R| ≤ atol + rtol·|R|, or with `either` one of the two alone, or with `of_C` of
    |C| in place of |R|. `source` says where it was read: repository, path, revision and lines.

    A rule of `verify` has no tolerances, but claims.
    """

    name: str
    draw: Draw
    K: int
    source: tuple[str, str, str, str] | None = None
    atol: float = 0.0
    rtol: float = 0.0
    kind: Literal["float32", "float16"] = "float32"
    either: bool = False
    of_C: bool = False
    precision: Literal["tf32"] | None = None

    def accepts(self, A: Array, B: Array, C: Array, R: Array) -> bool:
        if self.source is None:
            return self.verified(A, B, C)
        error, size = abs(C - R), abs(C if self.of_C else R)
        if self.either:
            return bool(((error <= self.atol) | (error <= self.rtol * (size + 1e-8))).all())
        return bool((error <= self.atol + self.rtol * size).all())

    def verified(self, A: Array, B: Array, C: Array) -> bool:
        kinds = [X.astype(self.kind) for X in (A, B, C)]
        signs = self.draw != "uniform"
        return matbench.verify(*kinds, precision=self.precision, random_signs=signs).ok


#: `problems/pmpp_v2` of kernelbot's problems is not in the revisions of gpu-mode that could be
#: read: its `matmul_py/reference.py` gives no tolerance, and so has those of `utils.py`.
RULES = (
    Rule("KernelBench", "uniform", 4096, (
        "ScalingIntelligence/KernelBench", "src/kernelbench/eval.py",
        "0d1222636478e6c238dc9886b6ba4be975b22efe", "93–100",
    ), 1e-4, 1e-4, of_C=True),
    Rule("KernelBench, 16 bits", "uniform", 4096, (
        "ScalingIntelligence/KernelBench", "src/kernelbench/eval.py",
        "0d1222636478e6c238dc9886b6ba4be975b22efe", "93–100",
    ), 1e-2, 1e-2, "float16", of_C=True),
    Rule("SOL-ExecBench", "normal", 4096, (
        "NVIDIA/SOL-ExecBench", "src/sol_execbench/data/workload.py",
        "d5c06562e54be8a324ae5b5a25ca488ced1fe2be", "86–94",
    ), 1e-2, 1e-2),
    Rule("flashinfer-bench", "normal", 4096, (
        "flashinfer-ai/flashinfer-bench", "flashinfer_bench/bench/utils.py",
        "00a1ec889fdae3b2cf7b08d551a180bb2e480db2", "97–112",
    ), 1e-2, 1e-2, "float16", either=True),
    Rule("kernelbot", "uniform", 1024, (
        "gpu-mode/reference-kernels", "problems/amd/utils.py",
        "e8b115b5931d4b0f306ef53df4d4e52b144b02d9", "34–35",
    ), 1e-8, 1e-5, "float16"),
    Rule("LeetGPU", "to_ten", 6144, (
        "AlphaGPU/leetgpu-challenges", "challenges/easy/2_matrix_multiplication/challenge.py",
        "1a1285a4461b9de4bb7389c7ff51111193b57cc8", "10–11",
    ), 1e-4, 1e-4),
    Rule("Tensara", "signed", 4096, (
        "tensara/problems", "problems/matrix-multiplication/def.py",
        "fced122bc9854a59cc1f4511cfc3b348b6799b4e", "122",
    ), 5e-3, 2e-4),
)  # fmt: skip
VERIFY = (
    Rule("verify", "normal", 4096),
    Rule("verify, TF32 claimed", "normal", 4096, precision="tf32"),
)


def in_bits(values: Array, bits: int) -> Array:
    """Numbers whose significands are rounded to so many bits."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits).astype(np.float32)


def honest(A: Array, B: Array) -> Iterator[tuple[str, Array]]:
    """Sums of all products in float32 or better, in usual orders."""
    K = A.shape[1]
    yield "sums in order", in_order(A, B)
    yield "sums in the opposite order", in_order(A[:, ::-1], B[::-1])
    fused = np.zeros((len(A), B.shape[1]), np.float32)
    for k in range(K):  # the product has 48 bits, so that float64 holds it
        fused = (fused + np.outer(A[:, k].astype(np.float64), B[k])).astype(np.float32)
    yield "fused multiply-adds", fused
    parts = (in_order(A[:, k : k + K // 4], B[k : k + K // 4]) for k in range(0, K, K // 4))
    yield "K split into 4", sum(parts, start=np.float32(0))
    blocks = (A[:, k : k + 32] @ B[k : k + 32] for k in range(0, K, 32))
    yield "blocks of 32 terms", sum(blocks, start=np.float32(0))
    yield "the product of a BLAS", A @ B
    yield "float64 sums", A.astype(np.float64) @ B.astype(np.float64)


def dishonest(A: Array, B: Array, old: Array) -> Iterator[tuple[str, Array]]:
    """What a submission may do instead. All sums are in float64: nothing else is wrong."""
    a, b = A.astype(np.float64), B.astype(np.float64)
    C = a @ b

    def changed(row: Any, column: Any, of: Callable[[Array], Array]) -> Array:
        made = C.copy()
        made[row, column] = of(made[row, column])
        return made

    for bits in BITS:
        yield f"operands of {bits} bits", in_bits(A, bits) @ in_bits(B, bits).astype(np.float64)
    for lost in LOST:
        yield f"{lost} term{'s' * (lost > 1)} lost", a[:, lost:] @ b[lost:]
    yield "one element is 0", changed(3, 5, lambda x: 0 * x)
    yield "one element is off by 1%", changed(3, 5, lambda x: 1.01 * x)
    yield "the last row is 0", changed(-1, slice(None), lambda x: 0 * x)
    yield "the last column is the one before", np.hstack([C[:, :-1], C[:, -2:-1]])
    yield "scaled by 1.0001", 1.0001 * C
    yield "scaled by 1.01", 1.01 * C
    yield "each element is its row's mean", np.broadcast_to(C.mean(1, keepdims=True), C.shape)
    yield "the result of other inputs", old


def verdicts(rule: Rule, side: int = SIDE, drawn: int = DRAWN) -> list[dict[str, Any]]:
    """How often a rule, and `verify` on the same arrays, accept each result.

    Results that are the same as the reference, because the type has no more bits, are left out.
    """
    counts: dict[tuple[str, bool], dict[str, int]] = {}
    for seed in range(drawn):
        random = np.random.default_rng([1, seed])
        shapes = (side, rule.K), (rule.K, side)
        A, B, *others = (
            DRAWS[rule.draw](random, shape).astype(rule.kind).astype(np.float32)
            for shape in shapes * 2
        )
        a, b = (in_bits(X, 11) if rule.precision == "tf32" else X for X in (A, B))
        R = _stored(a.astype(np.float64) @ b.astype(np.float64), rule)
        old = others[0].astype(np.float64) @ others[1].astype(np.float64)
        results = [(what, True, C) for what, C in honest(a, b)]
        results += [(what, False, C) for what, C in dishonest(a, b, old)]
        for what, is_honest, made in results:
            C = _stored(made, rule)
            if not is_honest and (C == R).all():
                continue
            of = counts.setdefault((what, is_honest), {"judged": 0, "accepted": 0, "verified": 0})
            of["judged"] += 1
            of["accepted"] += rule.accepts(A, B, C, R)
            of["verified"] += rule.verified(A, B, C)
    return [
        {"rule": rule.name, "result": what, "honest": is_honest, **of}
        for (what, is_honest), of in counts.items()
    ]


def _stored(C: Array, rule: Rule) -> Array:
    return np.asarray(C).astype(rule.kind).astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the verdicts as JSON")
    output = parser.parse_args().output
    found = []
    for rule in (*RULES, *VERIFY):
        found += verdicts(rule)
        rows = [row for row in found if row["rule"] == rule.name]
        print(f"\n{tabulate(rows, headers='keys', tablefmt='simple')}", flush=True)
    if output is not None:
        record = {
            "benchmark": "judges", "numpy": np.__version__, "side": SIDE,
            "rules": [*RULES, *VERIFY], "verdicts": found,
        }  # fmt: skip
        output.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


if __name__ == "__main__":
    main()
