// /// matbench
// name = "full-one"
// summary = "Says everything that can be said"
// group = "ladder"
// entry = "other"
// args = ["A", "B", "C", "M", "N", "K", "1.0", "2 * TILE", "workspace"]
// requires = ["cuda", "sm_80"]
// precision = "tf32"
// error_constant = 2.5
// deterministic = false
// [sweep]
// TILE = [8, 16]
// WIDE = [1]
// [tune]
// TILE = [8, 16, 32, 64]
// DEEP = [2, 4]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block", "K % 4 == 0"]
// block = ["TILE", 2, "1"]
// grid = ["ceil_div(N, TILE)", "M"]
// shared_bytes = "K * 4 + DEEP"
// workspace_bytes = "4 * M * N * multiprocessors"
// [model]
// global_loads = "2 * M * N * K / TILE"
// ///
extern "C" __global__ void other(const float *__restrict__ A, const float * B, float C[], int m,
                                 unsigned int n, long long k, float alpha, double beta,
                                 void *scratch) {}
