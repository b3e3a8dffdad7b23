"""Sources with parts deleted, doubled, exchanged or inserted, by seed."""

from __future__ import annotations

import random

_PIECES = [
    "(", ")", "{", "}", "[", "]", "<", ">", ";", ",", "*", "&", "/*", "*/", "//", '"', "'", "\\\n",
    "#define X ", "template <", "__global__ ", "const ", "::", "blockIdx.x * ", "0x", "...", "\t",
    "é", 'R"(', "#if 0\n",
]  # fmt: skip


def mutated(source: str, seed: int) -> str:
    """The source after one to six changes."""
    lot = random.Random(seed)
    for _ in range(lot.randint(1, 6)):
        start = lot.randrange(len(source) + 1)
        end = min(len(source), start + lot.choice([1, 1, 2, 5, 20, 100]))
        way = lot.randrange(5)
        if way == 0:
            source = source[:start] + source[end:]
        elif way == 1:
            source = source[:end] + source[start:end] * lot.randint(1, 3) + source[end:]
        elif way == 2:
            other = lot.randrange(len(source) + 1)
            source = source[:start] + source[other : other + end - start] + source[end:]
        elif way == 3:
            source = (
                source[:start] + lot.choice(_PIECES) * lot.choice([1, 1, 1, 50]) + source[start:]
            )
        else:
            source = source[:start] + source[start:end].swapcase() + source[end:]
    return source
