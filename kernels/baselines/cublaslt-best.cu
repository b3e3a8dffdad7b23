// /// matbench
// summary = "cuBLASLt's float32 product, without rounding inputs to TF32; the fastest of its first 16 algorithms"
// entry = "host product<float, float, COMPUTE_32F, 16>"
// ///
#include "cublaslt.cuh"
