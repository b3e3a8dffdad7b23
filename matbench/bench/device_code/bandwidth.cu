// Measures a device's bandwidth: copying and reading memory.

extern "C" __global__ void copy_fours(const float4 *from, float4 *to, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

// Only reads, `passes` times, so that the launch overhead is negligible. Each thread issues four
// loads at a time. The sum is stored if it is NaN, which never happens, but keeps the compiler
// from removing the loads.
extern "C" __global__ void read_fours(const float4 *from, float *out, size_t count, int passes)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (int pass = 0; pass < passes; ++pass) {
        size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
        for (; i + 3 * stride < count; i += 4 * stride) {
            const float4 a = from[i], b = from[i + stride];
            const float4 c = from[i + 2 * stride], d = from[i + 3 * stride];
            sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
            sum += c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
        }
        for (; i < count; i += stride)
            sum += from[i].x + from[i].y + from[i].z + from[i].w;
    }
    if (!(sum == sum)) out[0] = sum;
}
