"""Kernels without front matter, as programs write them: right ones, and ones with usual mistakes.

All are asked to compute C = A·B, row-major, of any size.
"""

from __future__ import annotations

NAIVE = """
__global__ void product(const float *A, const float *B, float *C, int M, int N, int K)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
"""
TILED = """
#define TILE 16
__global__ void product(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        int k = t * TILE;
        a[y][x] = row < M && k + x < K ? A[row * K + k + x] : 0.0f;
        b[y][x] = k + y < K && col < N ? B[(k + y) * N + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
"""


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


_PLACE = "B[k * N + col]"
_INDICES = NAIVE[NAIVE.index("    int row") : NAIVE.index("    if (row")]
#: A faulty kernel, and a piece of the reason why it is not measured.
FAULTY = {
    "b-transposed": (changed(NAIVE, (_PLACE, "B[col * K + k]")), "computes C = A·Bᵀ; asked"),
    "a-transposed": (changed(NAIVE, ("A[row * K + k]", "A[k * M + row]")), "computes C = Aᵀ·B;"),
    "c-transposed": (changed(NAIVE, ("C[row * N + col]", "C[col * M + row]")), "computes Cᵀ = A·B"),
    "column-major": (
        changed(
            NAIVE, ("A[row * K + k]", "A[k * M + row]"), (_PLACE, "B[col * K + k]"),
            ("C[row * N + col]", "C[col * M + row]"),
        ),
        "computes C = A·B, column-major; asked for C = A·B, row-major",
    ),
    "leading-dimension-b": (changed(NAIVE, (_PLACE, "B[k * K + col]")), "only where M == N"),
    "leading-dimension-c": (changed(NAIVE, ("C[row * N", "C[row * M")), "only where M == N"),
    "no-guard": (changed(NAIVE, ("if (row < M && col < N)", "")), "multiples of 16 (M, N); asked"),
    "adds-to-c": (changed(NAIVE, ("] = sum", "] += sum")), "computes C = A·B + C; asked"),
    "floor-tiles": (changed(TILED, ("(K + TILE - 1) / TILE", "K / TILE")), "multiples of 16 (K)"),
    "guard-swapped": (changed(NAIVE, ("row < M && col < N", "row < N && col < M")), "only where M"),
    "no-load-guard": (
        changed(TILED, ("row < M && k + x < K ? A[row * K + k + x] : 0.0f", "A[row * K + k + x]")),
        "right only for multiples of 16",
    ),
    "early-return": (
        changed(TILED, ("    float sum", "    if (row >= M || col >= N) return;\n    float sum")),
        "right only for multiples of 16",
    ),
    "square-without-guard": (
        changed(
            NAIVE, ("int M, int N, int K", "int N"), ("if (row < M && col < N)", ""),
            ("k < K", "k < N"), ("row * K", "row * N"),
        ),
        "right only for multiples of 16 (M)",
    ),
    "last-term": (changed(NAIVE, ("k < K", "k < K - 1")), "none of the calls"),
    "no-barrier": (changed(TILED, ("        __syncthreads();\n        for", "        for")), ""),
}  # fmt: skip
RIGHT = {
    "naive": NAIVE,
    "tiled": TILED,
    "one-dimension": changed(
        NAIVE,
        (_INDICES, "int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / N, col = i % N;\n"),
        ("row < M && col < N", "i < M * N"),
    ),
    "size_t": changed(NAIVE, ("int M, int N, int K", "size_t M, size_t N, size_t K")),
    "other-order": changed(
        NAIVE,
        (
            "const float *A, const float *B, float *C, int M, int N, int K",
            "int K, int N, int M, float *C, const float *B, const float *A",
        ),
    ),
    "other-names": changed(
        NAIVE,
        ("A[", "x["),
        ("B[", "y["),
        ("C[", "out["),
        ("*A", "*x"),
        ("*B", "*y"),
        ("*C", "*out"),
    ),
    "template": changed(
        NAIVE, ("__global__", "template <typename T>\n__global__"), ("float", "T"), ("0.0f", "0")
    ),
    "factors": changed(
        NAIVE,
        ("int K)", "int K, float alpha, float beta)"),
        ("= sum;", "= alpha * sum + beta * C[row * N + col];"),
    ),
}
#: Right, but it is passed one size alone.
SQUARE = changed(
    NAIVE, ("int M, int N, int K", "int N"), ("row < M", "row < N"), ("k < K", "k < N"),
    ("row * K", "row * N"),
)  # fmt: skip
