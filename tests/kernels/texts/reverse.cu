// /// matbench
// name = "mine"
// workload = "reverse"
// [launch]
// block = [32]
// grid = ["ceil_div(N, 32)"]
// ///
extern "C" __global__ void mine(const int *A, int *C, int N) { C[0] = A[0]; }
