// /// matbench
// name = "mine"
// summary = "For a test"
// workload = "WORKLOAD"
// PRECISION
// [launch]
// block = [1]
// grid = [1]
// ///
extern "C" __global__ void mine(PARAMETERS, int N) { }
