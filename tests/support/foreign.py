"""Foreign kernel files, and the expected output of `matbench adopt`."""

from __future__ import annotations

from support.paths import ROOT

FOLDER = ROOT / "tests" / "foreign"
#: For each file: what its kernel computes, at which sizes, in which blocks.
COMPUTES = {
    "array-rows.cu": "A·B, N = 80 and K = 48 only, 16×16 blocks",
    "array-transposed.cu": "A·Bᵀ, at 64x96x40 only, 16×16 blocks",
    "batched-contiguous.cu": "A·B, in batches, square sizes only, 8×8 blocks",
    "batched.cu": "A·B, in batches, 16×16 blocks",
    "dgemm.cu": "A·B, 16×16 blocks",
    "dynamic-shared.cu": "A·B, 16×16 blocks",
    "fetch-macros.cu": "A·B, M and N multiples of 64, K of 8 only, 16×16 blocks",
    "build-constants.cu": "A·B, 16×16 blocks, block_size_x = 16, block_size_y = 16, "
    "tile_size_y = 2",
    "fixed-sizes.cu": "A·B, at 96x160x64 only, 16×16 blocks",
    "float4-cast.cu": "A·B, N multiples of 4 only, 8×32 blocks",
    "hgemm-half-sums.cu": "A·B, 16×16 blocks, accumulator = float16",
    "hgemm-scaled.cu": "alpha·A·B + beta·C, 16×16 blocks",
    "hgemm.cu": "A·B, 16×16 blocks",
    "linear-index.cu": "A·B, blocks of 256",
    "matrix-struct.cu": "A·B, 16×16 blocks",
    "pitched-double.cu": "A·B, 16×16 blocks",
    "pointer-factors.cu": "alpha·A·B + beta·C, 24×12 blocks",
    "registered.cu": "A·B, 16×16 blocks",
    "rows-columns.cu": "A·B, 16×16 blocks",
    "several.cu": "A·B, 16×16 blocks",
    "sgemm-2d-tiles.cuh": "alpha·A·B + beta·C, M and N multiples of 64, K of 8 only, blocks of 64",
    "sgemm-coalesced.cuh": "alpha·A·B + beta·C, blocks of 256",
    "sgemm-column-major.cu": "alpha·A·B + beta·C, column-major, 32×32 blocks",
    "sgemm-leading.cu": "alpha·A·B + beta·C, 16×16 blocks",
    "sgemm-naive.cuh": "alpha·A·B + beta·C, 16×16 blocks",
    "sgemm-shared.cuh": "alpha·A·B + beta·C, M, N and K multiples of 16 only, blocks of 256",
    "split-k.cu": "A·B + C, 16×16 blocks",
    "square-pointers.cu": "A·B, square sizes only, 32×32 blocks",
    "textbook-tiled.cu": "A·B, square sizes only, multiples of 16, 16×16 blocks",
    "textbook.cu": "A·B, square sizes only, 16×16 blocks",
    "toolkit.cu": "A·B, M, N and K multiples of 32 only, 32×32 blocks",
    "transposed-b.cu": "A·Bᵀ, 16×16 blocks",
    "typed.cuh": "A·B, 16×16 blocks",
    "vectorized.cu": "A·B, M and N multiples of 64, K of 8 only, blocks of 256",
    "warp-rows.cu": "A·B, blocks of 128",
    "wmma-shared.cu": "A·B, M and K multiples of 32, N of 64 only, blocks of 256",
}
#: Launched as their authors do; two of them cannot be guessed, and two others would differ.
LAUNCHED = {
    "long-strides.cu": "A·B, in batches, 32×8 blocks",
    "torch-dispatch.cu": "A·Bᵀ, 20×12 blocks",
    "swizzled.cu": "A·B, 16×8 blocks",
    "batched-strides.cu": "A·B, in batches, blocks of 120",
    "blocks-in-line.cu": "A·B, blocks of 80",
    "coarsened.cu": "A·B, square sizes only, blocks of 144",
    "course-lab.cu": "A·B, blocks of 160",
    "launcher-template.cuh": "A·B, 20×6 blocks",
    "pointer-to-kernel.cu": "A·Bᵀ, blocks of 140",
    "runner-register-tiles.cu": "alpha·A·B + beta·C, M multiples of 48, N of 32, K of 6 only, "
    "blocks of 256",
    "shared-attribute.cu": "A·B, M multiples of 32, N of 48, K of 16 only, blocks of 48",
    "torch-extension.cu": "A·B, blocks of 192",
}
COMPUTES |= LAUNCHED
#: A size that a file's kernel takes, where that is not any.
SIZES = {
    "array-rows.cu": "33x80x48", "array-transposed.cu": "64x96x40", "fixed-sizes.cu": "96x160x64",
}  # fmt: skip
#: What needs CUDA's headers.
ONLY_CUDA = {
    "hgemm-half-sums.cu", "hgemm-scaled.cu", "hgemm.cu", "warp-rows.cu", "wmma-shared.cu",
}  # fmt: skip


def without_luck(output: str) -> str:
    """What `adopt` says, whether it met the sums of atomics in another order or not."""
    return output.replace(", deterministic = False", "")
