// /// matbench
// summary = "cuBLAS's float64 product"
// entry = "host gemm<double, double, COMPUTE_64F>"
// ///
#include "cublas.cuh"
