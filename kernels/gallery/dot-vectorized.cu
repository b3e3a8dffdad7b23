// /// matbench
// name = "dot-vectorized"
// summary = "16-byte loads, with several in flight per thread"
// workload = "dot"
// group = "gallery"
// previous = "dot-one-warp"
// finish = "sum"
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// EACH = [2]
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

// Adds: 16-byte loads, and 2·EACH of them in flight per thread.
// Limit: memory bandwidth. Reading alone can be faster than copying.
// Measured: 4.43 TB/s at N = 2^28, 110% of copy bandwidth (H200)
//
// Memory is only kept busy if enough bytes are in flight: its bandwidth times its latency. Wider
// loads, and several of them before the first is used, put more bytes in flight with fewer
// instructions.
//
// Buffers start at multiples of 16 bytes. If N is not a multiple of four, the first block adds the
// last products.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 2
#endif

extern "C" __global__ void dot_vectorized(const float *A, const float *B, float *C, int N)
{
    __shared__ float sums[THREADS];

    // Each thread adds up its own products, EACH times four of A and of B at a time.
    const int t = threadIdx.x;
    const size_t fours = N / 4, stride = (size_t)gridDim.x * THREADS;
    const float4 *A4 = (const float4 *)A, *B4 = (const float4 *)B;
    size_t i = (size_t)blockIdx.x * THREADS + t;
    float sum = 0.0f;
    for (; i + (EACH - 1) * stride < fours; i += EACH * stride) {
        float4 a[EACH], b[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            a[e] = A4[i + e * stride], b[e] = B4[i + e * stride];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            sum += a[e].x * b[e].x + a[e].y * b[e].y + (a[e].z * b[e].z + a[e].w * b[e].w);
    }
    for (; i < fours; i += stride)
        sum += A4[i].x * B4[i].x + A4[i].y * B4[i].y + (A4[i].z * B4[i].z + A4[i].w * B4[i].w);
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
