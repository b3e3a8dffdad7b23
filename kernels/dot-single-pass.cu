// /// matbench
// name = "dot-single-pass"
// summary = "The last block to end adds up what all blocks found: one launch, nothing for the host"
// workload = "dot"
// group = "ladder"
// requires = ["cuda"]
// [sweep]
// THREADS = [256]
// BLOCKS = [8]
// EACH = [4]
// [tune]
// THREADS = [64, 128, 256, 512, 1024]
// BLOCKS = [1, 2, 4, 8, 16, 32]
// EACH = [1, 2, 4, 8]
// [launch]
// where = ["THREADS % 32 == 0", "THREADS <= max_threads_per_block",
//          "BLOCKS * multiprocessors <= 8192"]
// block = ["THREADS"]
// grid = ["min(BLOCKS * multiprocessors, ceil_div(N, 4 * THREADS * EACH))"]
// [model]
// global_loads = "2 * N"
// ///

// As dot-shuffle, but C is the whole dot product. Each block leaves its sum in `partial`, and then
// counts itself. Whoever finds that all others were there before is the last one: it adds up the
// sums, always in the same order, so that the result is the same every time, whichever block was
// last. A fence stands between a block's sum and its count, so that nobody sees the count alone.
// The last block sets the count back for the next launch.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 4
#endif
#define MOST_BLOCKS 8192

static __device__ float partial[MOST_BLOCKS];
static __device__ unsigned done;

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

extern "C" __global__ void dot_single_pass(const float *A, const float *B, float *C, int N)
{
    __shared__ int last;

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
    if (t == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;

    // All sums are there: this block adds them up.
    __threadfence();
    sum = 0.0f;
    for (unsigned block = t; block < gridDim.x; block += THREADS)
        sum += __ldcg(&partial[block]);  // from where all blocks see it, not from the first cache
    sum = block_sum(sum);
    if (t == 0) {
        C[0] = sum;
        done = 0;
    }
}
