// /// matbench
// name = "dot-vectorized"
// summary = "16 bytes a load, and several loads of each thread under way at once"
// workload = "dot"
// group = "ladder"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// EACH = [4]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16, 32]
// EACH = [1, 2, 4, 8]
// [launch]
// where = ["THREADS % 32 == 0", "THREADS <= max_threads_per_block"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, 4 * THREADS * EACH))"]
// [model]
// global_loads = "2 * N"
// ///

// As dot-one-warp, but every load moves four numbers, and a thread asks for 2·EACH of them before
// it uses the first. What limits a dot product is how many bytes are under way to each
// multiprocessor: bandwidth times latency, some 25 KB on an H200. Both multiply them, at fewer
// instructions.
//
// Buffers start at multiples of 16 bytes. The last numbers, where N is no multiple of four, are
// left to the first block.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 4
#endif

// Four numbers, or zeros behind the last whole four.
static __device__ __forceinline__ float4 four(const float *values, size_t i, size_t fours)
{
    return i < fours ? ((const float4 *)values)[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

extern "C" __global__ void dot_vectorized(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    // Each thread adds up its own products: EACH fours at a time, neighbours side by side.
    const int t = threadIdx.x;
    const size_t fours = N / 4, step = (size_t)THREADS * EACH;
    float sum = 0.0f;
    for (size_t start = blockIdx.x * step; start < fours; start += gridDim.x * step) {
        float4 a[EACH], b[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            a[e] = four(A, start + e * THREADS + t, fours);
            b[e] = four(B, start + e * THREADS + t, fours);
        }
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            sum += a[e].x * b[e].x + a[e].y * b[e].y + (a[e].z * b[e].z + a[e].w * b[e].w);
    }
    if (blockIdx.x == 0 && 4 * fours + t < N)  // the last N % 4
        sum += A[4 * fours + t] * B[4 * fours + t];
    sums[t] = sum;
    __syncthreads();

    // One warp adds up the block's sums, then one thread the warp's.
    if (t < 32) {
        for (int other = t + 32; other < THREADS; other += 32)
            sum += sums[other];
        sums[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        for (int other = 1; other < 32; ++other)
            sum += sums[other];
        C[blockIdx.x] = sum;
    }
}
