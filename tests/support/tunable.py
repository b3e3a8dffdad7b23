"""A kernel to tune: one constant that costs time, and one with right and wrong values."""

from __future__ import annotations

from support.kernels import text_of

#: The sum is taken TURNS times over. KIND 2 is fast and wrong, for it leaves half of K out; KIND 3
#: is not allowed, KIND 4 does not compile; all this on the scripted device, too.
KERNEL = text_of("tunable.cu")


def huge(table: str) -> str:
    """The kernel with 10^8 combinations of four constants, in `[sweep]` or in `[tune]`."""
    names = ("TURNS", "P", "Q", "R")
    every = ", ".join(map(str, range(1, 101)))
    one = "".join(f"// {name} = [1]\n" for name in names)
    many = "".join(f"// {name} = [{every}]\n" for name in names)
    text = KERNEL
    swept, tuned = (many, "") if table == "sweep" else (one, many)
    for old, new in (
        ("// TURNS = [8]\n", swept),
        ("// TURNS = [1, 8, 64]\n// KIND = [1, 2, 3, 4]\n", tuned or "// KIND = [1]\n"),
        ("sum = 0.0f;\n        for", "sum = 0.0f * (P + Q + R);\n        for"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text
