// /// matbench
// summary = "cuBLAS's product of float16 inputs; sums in float32, C in float16"
// entry = "host gemm<__half, __half, COMPUTE_32F>"
// ///
#include "cublas.cuh"
