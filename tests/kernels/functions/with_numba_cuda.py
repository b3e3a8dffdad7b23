"""A kernel in Python, compiled by Numba for CUDA."""

from numba import cuda


@cuda.jit
def product(A, B, C):
    row, column = cuda.grid(2)
    if row < C.shape[0] and column < C.shape[1]:
        total = C.dtype.type(0)
        for k in range(A.shape[1]):
            total += A[row, k] * B[k, column]
        C[row, column] = total


def multiply(A, B, C):
    blocks = (C.shape[0] + 15) // 16, (C.shape[1] + 15) // 16
    product[blocks, (16, 16)](A, B, C)
