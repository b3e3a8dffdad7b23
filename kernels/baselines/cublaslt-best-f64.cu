// /// matbench
// summary = "cuBLASLt's float64 product; the fastest of its first 16 algorithms"
// entry = "host product<double, double, COMPUTE_64F, 16>"
// ///
#include "cublaslt.cuh"
