// /// matbench
// summary = "cuBLASLt's product of bfloat16 inputs; the fastest of its first 16 algorithms"
// entry = "host product<__nv_bfloat16, float, COMPUTE_32F, 16>"
// ///
#include "cublaslt.cuh"
