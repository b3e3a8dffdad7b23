// /// matbench
// name = "mine"
// summary = "For a test"
// [sweep]
// TILE = [8]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///
extern "C" __global__ void mine(const float *A, const float *B, float *C, int M, int N, int K) {}
