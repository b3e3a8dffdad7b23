// /// matbench
// summary = "cuBLAS's product of inputs rounded to TF32"
// entry = "host gemm<float, float, COMPUTE_32F_FAST_TF32>"
// precision = "tf32"
// ///
#include "cublas.cuh"
