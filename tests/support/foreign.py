"""Kernels of C = A·B as others write them, which tests change."""

from __future__ import annotations

from support.kernels import text_of

PARAMETERS = "const float *A, const float *B, float *C, int M, int N, int K"
WHOLE = "row < M && col < N"
_PLAIN = text_of("plain.cu")
DYNAMIC = text_of("dynamic.cu").replace("PARAMETERS", PARAMETERS)


def plain(
    check: str = WHOLE, width: str = "N", rows: str = "blockDim.y", columns: str = "blockDim.x"
) -> str:
    """One thread per element of C; `check` says which, and `rows` and `columns` are of a block."""
    text = _PLAIN.replace("PARAMETERS", PARAMETERS).replace("CHECKED", check)
    return text.replace("WIDTH", width).replace("ROWS", rows).replace("COLUMNS", columns)
