// /// matbench
// summary = "cuBLASLt's product of e4m3 inputs; C in bfloat16"
// entry = "host scaled<__nv_fp8_e4m3, __nv_bfloat16, COMPUTE_32F, 1, false>"
// requires = ["sm_89"]
// transpose = "NT"
// accumulator = "float22"
// scales = "matrix"
// [launch]
// where = ["N % 16 == 0", "K % 16 == 0"]
// ///
#include "cublaslt.cuh"
