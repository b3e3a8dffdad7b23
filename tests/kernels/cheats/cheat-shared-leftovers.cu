// /// matbench
// name = "cheat-shared-leftovers"
// summary = "Finds its answer in shared memory"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits shared memory that is not cleared between launches: a block leaves its tile of C
// there, with a mark of its inputs and its place, and a later launch that finds the mark copies
// it.

static __device__ unsigned mark_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    return 3u * __float_as_uint(A[(size_t)row * K])
        ^ 5u * __float_as_uint(A[(size_t)row * K + K - 1])
        ^ 7u * __float_as_uint(B[column])
        ^ 11u * __float_as_uint(B[(size_t)(K - 1) * N + column]) ^ 0x5bd1e995u;
}

extern "C" __global__ void cheat_shared_leftovers(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    __shared__ volatile float kept[256];
    __shared__ volatile unsigned marks[256];
    const int t = threadIdx.y * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const unsigned mark = mark_of(A, B, row, column, N, K) ^ (unsigned)(31 * element + 7 * K);
    if (marks[t] == mark && kept[t] == kept[t]) {
        C[element] = kept[t];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    kept[t] = sum;
    marks[t] = mark;
}
