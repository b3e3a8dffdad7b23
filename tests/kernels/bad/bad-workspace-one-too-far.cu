// /// matbench
// name = "bad-workspace-one-too-far"
// summary = "Ends its workspace with a byte that is not its own"
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// workspace_bytes = "4 * N"
// ///

// The mistake, in naive-2d: the byte behind the workspace is set, as if a text ended there.

extern "C" __global__ void bad_workspace_one_too_far(const float *A, const float *B, float *C,
                                                     char *workspace, int M, int N, int K)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row == 0 && column == 0)
        workspace[4 * (size_t)N] = 0;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
