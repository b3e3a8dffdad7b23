"""The keys that only matrix products have, memory layout and scaling; and `arithmetic`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, get_args

import msgspec

from matbench import workloads
from matbench.errors import listed
from matbench.model import EIGHT_BITS, Arithmetic, FrontMatter, Kernel, Precision

#: Names that the problem and the layout define for expressions.
NAMES = (
    "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c", "alpha", "beta", "batch"
)  # fmt: skip
#: Beyond this power of two, products with alpha and beta could leave float32's range.
_EXPONENT = 60
FACTORS = f"must be 0, or 2^-{_EXPONENT} to 2^{_EXPONENT} in magnitude"
_KEYS = (
    "layout", "transpose", "padding", "alpha", "beta", "batch", "reads", "accumulator", "scales",
    "promotes",
)  # fmt: skip
#: So that sums of products of int8, times alpha, plus beta times the old C, are in int32's range.
INT32_CONDITIONS = (
    "max(alpha, -alpha) * K <= 2**17", "max(beta, -beta) <= 2**17",
    "alpha % 1 == 0", "beta % 1 == 0",
)  # fmt: skip


def check(kernel: Kernel, wrong: Callable[..., NoReturn]) -> None:
    """Say what is `wrong` with these keys of a kernel file, and the key."""
    try:
        if kernel.arithmetic is not None:
            Arithmetic.parse(kernel.arithmetic)
    except ValueError:
        known = ", ".join(get_args(Precision))
        what = f"must be a number of products, 1 to 16, and their precision ({known})"
        wrong(f'arithmetic {kernel.arithmetic!r:.40}: {what}, as in "3 tf32"', "arithmetic")
    if kernel.workload != workloads.DEFAULT:
        usual = {field.name: field.default for field in msgspec.structs.fields(FrontMatter)}
        for key in _KEYS:
            if getattr(kernel, key) != usual[key]:
                wrong(f"{key}: only for {workloads.DEFAULT}, not {kernel.workload}", key)
    for key in ("alpha", "beta"):
        for number in numbers(getattr(kernel, key)):
            if not is_factor(number):
                wrong(f"{key} = {number:g}: {FACTORS}", key)


def check_types(kernel: Kernel, wrong: Callable[..., NoReturn]) -> None:
    """The same for its scales and its accumulator; all other keys, and the types, are valid."""
    contract = kernel.contract
    if kernel.scales is not None:
        if contract.storage not in EIGHT_BITS:
            known = listed(EIGHT_BITS)
            wrong(f"scales: only for operands of {known}, not {contract.storage}", "scales")
        if contract.result == "int32":
            wrong("scales: C is int32, so there are none; leave it out", "scales")
        if kernel.batch != 1:
            wrong("scales: not for batches", "scales")
    if kernel.promotes is not None and kernel.accumulator != "float22":
        wrong('promotes: only with accumulator = "float22"', "promotes")
    if kernel.accumulator in ("float22", "int32"):
        suits = contract.storage == "int8"
        if contract.storage not in EIGHT_BITS or suits != (kernel.accumulator == "int32"):
            sums = f"sums of {contract.storage} products are not in {kernel.accumulator}"
            wrong(f"accumulator: {sums}", "accumulator")


def is_factor(number: float) -> bool:
    """Whether alpha or beta may have this value."""
    return number == 0 or 2.0**-_EXPONENT <= abs(number) <= 2.0**_EXPONENT


def numbers(value: float | tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of a key, as a tuple even if there is only one."""
    return value if isinstance(value, tuple) else (value,)
