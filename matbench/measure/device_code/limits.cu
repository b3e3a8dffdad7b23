// What a device can do at best: move memory, and multiply and add in registers.

extern "C" __global__ void copy_fours(const float4 *from, float4 *to, size_t count)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

// Reads alone. What was read goes to `out` if it ever added up to a NaN: a compiler must not drop it.
extern "C" __global__ void read_fours(const float4 *from, float *out, size_t count)
{
    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        sum += from[i].x + from[i].y + from[i].z + from[i].w;
    if (!(sum == sum)) out[0] = sum;
}

// Eight sums side by side, so that none waits for the one before it; `rounds` times eight
// multiply-adds of each. What comes out is stored: a compiler must not drop it.
extern "C" __global__ void multiply_add(float *out, float factor, float addend, int rounds)
{
    float sum[8];
    for (int i = 0; i < 8; ++i)
        sum[i] = (float)(threadIdx.x + i);
    for (int round = 0; round < rounds; ++round) {
        #pragma unroll
        for (int step = 0; step < 8; ++step) {
            #pragma unroll
            for (int i = 0; i < 8; ++i)
                sum[i] = fmaf(sum[i], factor, addend);
        }
    }
    float total = 0.0f;
    for (int i = 0; i < 8; ++i)
        total += sum[i];
    out[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = total;
}
