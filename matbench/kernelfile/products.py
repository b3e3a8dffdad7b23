"""The keys that only matrix products have, memory layout and scaling; and `arithmetic`."""

from __future__ import annotations

from typing import get_args

import msgspec

from matbench import workloads
from matbench.model import Arithmetic, FrontMatter, Kernel, Precision

#: Names that the problem and the layout define for expressions.
NAMES = (
    "lda", "ldb", "ldc", "stride_a", "stride_b", "stride_c", "alpha", "beta", "batch"
)  # fmt: skip
#: The key of `[model]` that is not an expression.
ARITHMETIC = "arithmetic"
#: Beyond this power of two, products with alpha and beta could leave float32's range.
_EXPONENT = 60
FACTORS = f"must be 0, or 2^-{_EXPONENT} to 2^{_EXPONENT} in magnitude"
_KEYS = ("layout", "transpose", "padding", "alpha", "beta", "batch", "reads", "accumulator")


def mistake(kernel: Kernel) -> tuple[str, ...] | None:
    """What is wrong with these keys of a kernel file, and the key; None if all are valid."""
    text = kernel.model.get(ARITHMETIC)
    try:
        if text is not None:
            Arithmetic.parse(text)
    except ValueError:
        known = ", ".join(get_args(Precision))
        what = f"must be a number of products, 1 to 16, and their precision ({known})"
        return f'model.arithmetic {text!r:.40}: {what}, as in "3 tf32"', "model", ARITHMETIC
    if kernel.workload != workloads.DEFAULT:
        usual = {field.name: field.default for field in msgspec.structs.fields(FrontMatter)}
        for key in _KEYS:
            if getattr(kernel, key) != usual[key]:
                return f"{key}: only for {workloads.DEFAULT}, not {kernel.workload}", key
    for key in ("alpha", "beta"):
        for number in numbers(getattr(kernel, key)):
            if not is_factor(number):
                return f"{key} = {number:g}: {FACTORS}", key
    return None


def is_factor(number: float) -> bool:
    """Whether alpha or beta may have this value."""
    return number == 0 or 2.0**-_EXPONENT <= abs(number) <= 2.0**_EXPONENT


def numbers(value: float | tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of a key, as a tuple even if there is only one."""
    return value if isinstance(value, tuple) else (value,)
