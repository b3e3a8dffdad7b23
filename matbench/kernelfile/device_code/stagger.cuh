// Each warp sleeps for a different time (up to about a microsecond) wherever warps may drift apart.
struct matbench_stamp;
inline __device__ void matbench_stagger(unsigned most_ns)
{
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned hash = (thread / 32 + 1) * 2654435761u ^ (unsigned)clock64() * 2246822519u;
    hash ^= hash >> 15;
    const unsigned wait = __shfl_sync(__activemask(), hash, __ffs(__activemask()) - 1) % most_ns;
#if __CUDA_ARCH__ >= 700
    __nanosleep(wait);
#else
    const long long end = clock64() + wait;
    while (clock64() < end) { }
#endif
}
inline __device__ void matbench_barrier(void) { __syncthreads(); }
#define __syncthreads() (matbench_stagger(500), matbench_barrier(), matbench_stagger(500))
