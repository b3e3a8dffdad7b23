// /// matbench
// name = "dot-compensated"
// summary = "Compensated products and sums: as accurate as in twice the precision"
// workload = "dot"
// group = "gallery"
// previous = "dot-vectorized"
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

// Adds: to dot-vectorized, the rounding errors of every product and sum, as if in twice the
//   precision.
// Limit: memory bandwidth: the additional arithmetic is done while loads are in flight.
// Measured: 4.43 TB/s at N = 2^28, 110% of copy bandwidth (H200)
//
// The rounding error of a product comes exactly from a fused multiply-add, and that of a sum from
// Knuth's six operations. A second sum collects both. This is Dot2 of Ogita, Rump and Oishi,
// "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005). The only error left is that of
// rounding a block's sum to float32 at the end.

#ifndef THREADS
#define THREADS 256
#endif
#ifndef EACH
#define EACH 2
#endif

// A number represented as the sum of two.
typedef struct {
    float high, low;
} pair;

// sum + value. Algebraically, zero is added to `low`: never build this with --use_fast_math or
// -cl-fast-relaxed-math.
static __device__ __forceinline__ pair plus(pair sum, float value)
{
    const float high = sum.high + value;
    const float added = high - sum.high;
    sum.low += (sum.high - (high - added)) + (value - added);
    sum.high = high;
    return sum;
}

// sum + a·b. The product is an fma with 0, which the compiler cannot fuse with the additions.
static __device__ __forceinline__ pair plus_product(pair sum, float a, float b)
{
    const float product = __fmaf_rn(a, b, 0.0f);
    sum = plus(sum, product);
    sum.low += __fmaf_rn(a, b, -product);
    return sum;
}

static __device__ __forceinline__ pair plus_products(pair sum, float4 a, float4 b)
{
    sum = plus_product(sum, a.x, b.x);
    sum = plus_product(sum, a.y, b.y);
    sum = plus_product(sum, a.z, b.z);
    return plus_product(sum, a.w, b.w);
}

extern "C" __global__ void dot_compensated(const float *A, const float *B, float *C, int N)
{
    __shared__ pair sums[THREADS];

    // Each thread adds up its own products, EACH times four of A and of B at a time.
    const int t = threadIdx.x;
    const size_t fours = N / 4, stride = (size_t)gridDim.x * THREADS;
    const float4 *A4 = (const float4 *)A, *B4 = (const float4 *)B;
    size_t i = (size_t)blockIdx.x * THREADS + t;
    pair sum;
    sum.high = 0.0f, sum.low = 0.0f;
    for (; i + (EACH - 1) * stride < fours; i += EACH * stride) {
        float4 a[EACH], b[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            a[e] = A4[i + e * stride], b[e] = B4[i + e * stride];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            sum = plus_products(sum, a[e], b[e]);
    }
    for (; i < fours; i += stride)
        sum = plus_products(sum, A4[i], B4[i]);
    if (blockIdx.x == 0 && 4 * fours + t < N)  // the last N % 4
        sum = plus_product(sum, A[4 * fours + t], B[4 * fours + t]);
    sums[t] = sum;
    __syncthreads();

    // One warp adds up the block's sums, then one thread the warp's.
    if (t < 32) {
        for (int other = t + 32; other < THREADS; other += 32) {
            sum = plus(sum, sums[other].high);
            sum.low += sums[other].low;
        }
        sums[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        for (int other = 1; other < 32; ++other) {
            sum = plus(sum, sums[other].high);
            sum.low += sums[other].low;
        }
        C[blockIdx.x] = sum.high + sum.low;
    }
}
