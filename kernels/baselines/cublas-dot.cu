// /// matbench
// summary = "cuBLAS's float32 dot product"
// entry = "host dot"
// workload = "dot"
// ///
#include "cublas.cuh"

void dot(cublasHandle_t cublas, const float *A, const float *B, float *C, int N) {
    require(cublasSetPointerMode_v2(cublas, POINTER_MODE_DEVICE), "cuBLAS");
    require(cublasSdot_v2(cublas, N, A, 1, B, 1, C), "cuBLAS");
    require(cublasSetPointerMode_v2(cublas, POINTER_MODE_HOST), "cuBLAS");
}
