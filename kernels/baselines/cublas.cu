// /// matbench
// summary = "cuBLAS's float32 product, without rounding inputs to TF32"
// entry = "host gemm<float, float, COMPUTE_32F>"
// ///
#include "cublas.cuh"
