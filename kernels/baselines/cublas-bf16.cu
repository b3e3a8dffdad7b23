// /// matbench
// summary = "cuBLAS's product of bfloat16 inputs"
// entry = "host gemm<__nv_bfloat16, float, COMPUTE_32F>"
// ///
#include "cublas.cuh"
