// /// matbench
// summary = "cuBLASLt's product of float16 inputs; sums in float32, C in float16; the fastest of its first 16 algorithms"
// entry = "host product<__half, __half, COMPUTE_32F, 16>"
// ///
#include "cublaslt.cuh"
