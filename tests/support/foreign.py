"""Foreign kernel files, and what `matbench adopt` says of them."""

from __future__ import annotations

from support.paths import ROOT

FOLDER = ROOT / "tests" / "foreign"
#: For each file what its kernel computes, at which sizes, in which blocks.
COMPUTES = {
    "batched-contiguous.cu": "A·B, in batches, square sizes only, 8×8 blocks",
    "batched.cu": "A·B, in batches, 16×16 blocks",
    "dgemm.cu": "A·B, 16×16 blocks",
    "dynamic-shared.cu": "A·B, 16×16 blocks",
    "fetch-macros.cu": "A·B, whole tiles only (M % 64, N % 64, K % 8 = 0), 16×16 blocks",
    "float4-cast.cu": "A·B, whole tiles only (N % 4 = 0), 32×16 blocks",
    "hgemm-half-sums.cu": "A·B, 16×16 blocks, accumulator = float16",
    "hgemm.cu": "A·B, 16×16 blocks",
    "linear-index.cu": "A·B, blocks of 256",
    "rows-columns.cu": "A·B, 16×16 blocks",
    "several.cu": "A·B, 16×16 blocks",
    "sgemm-2d-tiles.cuh": "alpha·A·B + beta·C, whole tiles only (M % 64, N % 64, K % 8 = 0), "
    "blocks of 64",
    "sgemm-coalesced.cuh": "alpha·A·B + beta·C, blocks of 256",
    "sgemm-column-major.cu": "alpha·A·B + beta·C, column-major, 32×32 blocks",
    "sgemm-leading.cu": "alpha·A·B + beta·C, 16×16 blocks",
    "sgemm-naive.cuh": "alpha·A·B + beta·C, 16×16 blocks",
    "sgemm-shared.cuh": "alpha·A·B + beta·C, whole tiles only (M % 16, N % 16, K % 16 = 0), "
    "blocks of 256",
    "square-pointers.cu": "A·B, square sizes only, 32×32 blocks",
    "textbook-tiled.cu": "A·B, square sizes only, whole tiles only (M % 16 = 0), 16×16 blocks",
    "textbook.cu": "A·B, square sizes only, 16×16 blocks",
    "toolkit.cu": "A·B, whole tiles only (M % 32, N % 32, K % 32 = 0), 32×32 blocks",
    "transposed-b.cu": "A·Bᵀ, 16×16 blocks",
    "typed.cuh": "A·B, 16×16 blocks",
    "vectorized.cu": "A·B, whole tiles only (M % 64, N % 64, K % 8 = 0), blocks of 256",
}
#: C++ that only nvcc builds.
ONLY_CUDA = {"hgemm-half-sums.cu", "hgemm.cu", "typed.cuh", "vectorized.cu"}
