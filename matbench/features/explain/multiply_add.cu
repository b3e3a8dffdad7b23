// Measures a device's rate of multiply-adds in registers.

// Eight independent sums, so that no multiply-add waits for the previous one; `rounds` times eight
// multiply-adds of each. The result is stored so that the compiler cannot remove the arithmetic.
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
