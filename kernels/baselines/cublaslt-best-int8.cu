// /// matbench
// summary = "cuBLASLt's product of int8 inputs; C in int32; the fastest of its first 16 algorithms"
// entry = "host turned<signed char, int, COMPUTE_32I, 16>"
// requires = ["sm_75"]
// transpose = "NT"
// [launch]
// where = ["N % 4 == 0", "K % 4 == 0"]
// ///
#include "cublaslt.cuh"
