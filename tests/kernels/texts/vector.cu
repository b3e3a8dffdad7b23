// /// matbench
// name = "mine"
// summary = "For a test"
// workload = "WORKLOAD"
// args = [ARGS]
// [launch]
// block = [64]
// grid = ["GRID"]
// ///
extern "C" __global__ void mine(PARAMETERS, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
