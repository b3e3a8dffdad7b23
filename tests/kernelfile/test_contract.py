"""What is asked of a kernel, against what its table says that it computes."""

from __future__ import annotations

from typing import Any

import pytest

from matbench.errors import UsageError
from matbench.kernelfile.contract import Contract
from matbench.model import Kernel, LaunchRules

ALL = ("A", "B", "C", "M", "N", "K")


def kernel(*where: str, args: tuple[str, ...] = ALL, **front: Any) -> Kernel:
    rules = LaunchRules(block=(1,), grid=(1,), where=where)
    return Kernel(name="mine", launch=rules, args=args, **front)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, ""),
        ({"transpose": "NT"}, "computes C = A·Bᵀ; asked for C = A·B"),
        ({"layout": "column-major"},
         "computes C = A·B, column-major; asked for C = A·B, row-major"),
        ({"layout": "column-major", "transpose": "TT"},
         "computes Cᵀ = A·B; asked for C = A·B, row-major"),
        ({"layout": "column-major", "transpose": "TN"},
         "computes Cᵀ = A·Bᵀ; asked for C = A·B, row-major"),
        ({"beta": 1.0}, "computes C = A·B + C; asked for C = A·B"),
        ({"beta": -2.0, "transpose": "TN"}, "computes C = Aᵀ·B + -2·C; asked for C = A·B"),
        ({"beta": (0.0, 0.5)}, ""),
        ({"beta": 1.0, "args": (*ALL, "beta")}, ""),
        ({"workload": "dot"}, "computes dot; asked for C = A·B"),
    ],
)  # fmt: skip
def test_what_is_computed_instead(found: dict[str, Any], told: str) -> None:
    assert Contract().breach(kernel(**found)) == told


@pytest.mark.parametrize(
    ("where", "args", "told"),
    [
        (["M % 16 == 0", "K % TILE == 0"], ALL, "for multiples of 16 (M) and 8 (K)"),
        (["M == N", "N == K"], ALL, "where M == N and N == K"),
        (["N % 4 == 0", "M >= 32"], ALL, "for multiples of 4 (N) where M >= 32"),
        (["M == N", "N == K", "M % 8 == 0"], ("A", "B", "C", "N"), "for multiples of 8 (M)"),
        (["M == N", "N == K"], ("A", "B", "C", "N"), ""),
        (["M == 64", "N == 64", "K == 64"], ("A", "B", "C"), ""),
        (["M == 64", "N == 64", "K == 64"], ALL, "where M == 64, N == 64 and K == 64"),
        (["TILE * TILE <= max_threads_per_block"], ALL, ""),
        (["N == 1"], ("A", "B", "C", "M", "K"), ""),
    ],
)
def test_sizes_that_are_left_out(where: list[str], args: tuple[str, ...], told: str) -> None:
    """Sizes that a kernel is not passed are no mistake."""
    found = Contract().breach(kernel(*where, args=args, sweep={"TILE": (8, 16)}))
    assert found == (f"right only {told}; asked for any size" if told else "")


@pytest.mark.parametrize(
    ("asked", "where", "is_right"),
    [
        (["N % 16 == 0"], ["N % 4 == 0"], True),
        (["N % 4 == 0"], ["N % 16 == 0"], False),
        (["N % 4 == 0"], ["M % 4 == 0"], False),
        (["M == N", "N == K"], ["M == K"], True),
        (["M == 4096", "K == 8192"], ["M % 64 == 0", "K >= 1024"], True),
        (["M == 4000"], ["M % 64 == 0"], False),
        (["M < 1"], ["M % 64 == 0"], False),
    ],
)
def test_sizes_asked_for_may_be_fewer(asked: list[str], where: list[str], is_right: bool) -> None:
    told = Contract(where=tuple(asked)).breach(kernel(*where))
    assert (told == "") == is_right
    assert is_right or f"asked for sizes where {' and '.join(asked)}" in told


def test_keys_of_front_matter_are_asked_for_too() -> None:
    pinned = Contract(beta=1.0).pinned(
        {"transpose": "NT", "precision": "tf32", "launch": {"where": ["N % 4 == 0"], "block": [8]}}
    )
    assert pinned == Contract(transpose="NT", beta=1.0, where=("N % 4 == 0",))


def test_what_is_no_contract() -> None:
    with pytest.raises(UsageError, match="contract: Expected `object`"):
        Contract.of(7)  # type: ignore[arg-type]


def test_conditions_may_be_one_text() -> None:
    asked = Contract.of({"where": "M % 4 == 0, max(N, K) > 1"})
    assert asked.where == ("M % 4 == 0", "max(N, K) > 1")
