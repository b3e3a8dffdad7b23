"""A product that Numba compiles for the CPU in its first call."""

import numba


@numba.njit(parallel=True, fastmath=True)
def product(A, B, C):
    for i in numba.prange(C.shape[0]):
        C[i, :] = 0
        for k in range(A.shape[1]):
            for j in range(C.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def multiply(A, B, C):
    product(A, B, C)
