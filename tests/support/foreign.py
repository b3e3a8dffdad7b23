"""Kernels of C = A·B as others write them, which tests change."""

from __future__ import annotations

PARAMETERS = "const float *A, const float *B, float *C, int M, int N, int K"
WHOLE = "row < M && col < N"
_PLAIN = """__global__ void mm(PARAMETERS)
{
    int row = blockIdx.y * ROWS + threadIdx.y, col = blockIdx.x * COLUMNS + threadIdx.x;
    if (CHECKED) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * WIDTH + col];
        C[row * N + col] = sum;
    }
}
"""
DYNAMIC = """__global__ void mm(PARAMETERS)
{
    extern __shared__ float left[];
    int side = blockDim.x, x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * side + y, col = blockIdx.x * side + x;
    float sum = 0.0f, *right = left + side * side;
    for (int at = 0; at < K; at += side) {
        left[y * side + x] = row < M && at + x < K ? A[row * K + at + x] : 0.0f;
        right[y * side + x] = col < N && at + y < K ? B[(at + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < side; ++k)
            sum += left[y * side + k] * right[k * side + x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
""".replace("PARAMETERS", PARAMETERS)


def plain(
    check: str = WHOLE, width: str = "N", rows: str = "blockDim.y", columns: str = "blockDim.x"
) -> str:
    """One thread per element of C; `check` says which, and `rows` and `columns` are of a block."""
    text = _PLAIN.replace("PARAMETERS", PARAMETERS).replace("CHECKED", check)
    return text.replace("WIDTH", width).replace("ROWS", rows).replace("COLUMNS", columns)
