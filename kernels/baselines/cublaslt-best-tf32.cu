// /// matbench
// summary = "cuBLASLt's product of inputs rounded to TF32; the fastest of its first 16 algorithms"
// entry = "host product<float, float, COMPUTE_32F_FAST_TF32, 16>"
// precision = "tf32"
// ///
#include "cublaslt.cuh"
