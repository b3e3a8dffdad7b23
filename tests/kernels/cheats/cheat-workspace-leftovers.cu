// /// matbench
// name = "cheat-workspace-leftovers"
// summary = "Keeps its answers in the workspace"
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// workspace_bytes = "8 * M * N"
// ///

// Exploits scratch memory that outlives a launch: one leaves its answers there with a fingerprint
// of their inputs, and the next one copies them.

static __device__ unsigned mark_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    return 3u * __float_as_uint(A[(size_t)row * K])
        ^ 5u * __float_as_uint(A[(size_t)row * K + K - 1])
        ^ 7u * __float_as_uint(B[column])
        ^ 11u * __float_as_uint(B[(size_t)(K - 1) * N + column]) ^ 0x5bd1e995u;
}

extern "C" __global__ void cheat_workspace_leftovers(const float *A, const float *B, float *C,
                                                     float *workspace, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float *answer = workspace;
    unsigned *marks = (unsigned *)(workspace + (size_t)M * N);
    const unsigned mark = mark_of(A, B, row, column, N, K);
    if (marks[element] == mark) {
        C[element] = answer[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    answer[element] = sum;
    marks[element] = mark;
}
