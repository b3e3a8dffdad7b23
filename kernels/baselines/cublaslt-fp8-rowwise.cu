// /// matbench
// summary = "cuBLASLt's product of e4m3 inputs, with a factor for each row of A and column of B; C in bfloat16"
// entry = "host scaled<__nv_fp8_e4m3, __nv_bfloat16, COMPUTE_32F, 1, true>"
// requires = ["sm_90"]
// transpose = "NT"
// accumulator = "float22"
// scales = "rows"
// [launch]
// where = ["N % 16 == 0", "K % 16 == 0"]
// ///
#include "cublaslt.cuh"
