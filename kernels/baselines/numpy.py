import numpy as np


# /// matbench
# summary = "NumPy's float32 product, computed by its BLAS library"
# ///
def numpy(A, B, C, alpha, beta):
    before = np.float32(beta) * C if beta else None
    np.matmul(A, B, out=C)
    if alpha != 1:
        C *= np.float32(alpha)
    if beta:
        C += before
