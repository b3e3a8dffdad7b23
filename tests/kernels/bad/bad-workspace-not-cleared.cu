// /// matbench
// name = "bad-workspace-not-cleared"
// summary = "Adds to a workspace that it never cleared"
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// workspace_bytes = "4 * M * N"
// ///

// The mistake, in naive-2d: the sum is collected in the workspace, which is taken to hold zeros.

extern "C" __global__ void bad_workspace_not_cleared(const float *A, const float *B, float *C,
                                                     float *workspace, int M, int N, int K)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float *sum = &workspace[(size_t)row * N + column];
    for (int k = 0; k < K; ++k)
        *sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = *sum;
}
