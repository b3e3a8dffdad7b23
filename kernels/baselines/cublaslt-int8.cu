// /// matbench
// summary = "cuBLASLt's product of int8 inputs; C in int32"
// entry = "host turned<signed char, int, COMPUTE_32I, 1>"
// requires = ["sm_75"]
// transpose = "NT"
// [launch]
// where = ["N % 4 == 0", "K % 4 == 0"]
// ///
#include "cublaslt.cuh"
