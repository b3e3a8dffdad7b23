// /// matbench
// name = "dot-shuffle"
// summary = "Sums go from register to register within a warp; shared memory holds one per warp"
// workload = "dot"
// group = "ladder"
// requires = ["cuda"]
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

// As dot-vectorized, but the threads of a warp pass their sums on by shuffles: each adds what the
// one 16 places further on holds, then 8, 4, 2 and 1. That needs neither shared memory nor a
// barrier. One sum per warp is left in shared memory, and after the only barrier the first warp
// adds those up in the same way.

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

// The sum over a warp, in its first thread.
static __device__ __forceinline__ float warp_sum(float sum)
{
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    return sum;
}

// The sum over the block, in its first thread. All threads come here.
static __device__ __forceinline__ float block_sum(float sum)
{
    __shared__ float sums[THREADS / 32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    sum = warp_sum(sum);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    if (warp == 0)
        sum = warp_sum(lane < THREADS / 32 ? sums[lane] : 0.0f);
    return sum;
}

extern "C" __global__ void dot_shuffle(const float *A, const float *B, float *C, int N)
{
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

    sum = block_sum(sum);
    if (t == 0)
        C[blockIdx.x] = sum;
}
