// A function on the host that calls cuBLAS. The last END - 1 terms of K are left out.
#include <cublas_v2.h>

// cuBLAS's matrices are column-major: it computes the transposed C from the transposed B and A.
cublasStatus_t library(
    cublasHandle_t handle, const float *A, const float *B, float *C, int M, int N, int K
) {
    const float alpha = 1, beta = 0;
    return cublasSgemm(
        handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K + 1 - END, &alpha, B, N, A, K, &beta, C, N
    );
}
