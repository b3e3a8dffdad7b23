// /// matbench
// name = "cheat-heap-leftovers"
// summary = "Finds its answer in memory from malloc"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the heap of the device outlives a launch: memory that was freed is handed out
// again with what the last launch left in it, here a block's part of C and marks of its inputs.

static __device__ unsigned mark_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    return 3u * __float_as_uint(A[(size_t)row * K])
        ^ 5u * __float_as_uint(A[(size_t)row * K + K - 1])
        ^ 7u * __float_as_uint(B[column])
        ^ 11u * __float_as_uint(B[(size_t)(K - 1) * N + column]) ^ 0x5bd1e995u;
}

extern "C" __global__ void cheat_heap_leftovers(const float *A, const float *B, float *C,
                                                int M, int N, int K)
{
    __shared__ float *kept;
    const int t = threadIdx.y * 16 + threadIdx.x;
    if (t == 0)
        kept = (float *)malloc(2 * 256 * sizeof(float));
    __syncthreads();

    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row < M && column < N) {
        const size_t element = (size_t)row * N + column;
        const unsigned mark = mark_of(A, B, row, column, N, K) ^ (unsigned)(31 * element + 7 * K);
        if (kept && __float_as_uint(kept[256 + t]) == mark) {
            C[element] = kept[t];
        } else {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
            C[element] = sum;
            if (kept) {
                kept[t] = sum;
                kept[256 + t] = __uint_as_float(mark);
            }
        }
    }
    __syncthreads();
    if (t == 0)
        free(kept);
}
