// Sums of a warp and of a block of THREADS threads, by shuffles.

// Returns the sum over a warp to its first thread.
static __device__ __forceinline__ float warp_sum(float sum)
{
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    return sum;
}

// Returns the sum over the block to its first thread. All threads must call it.
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
