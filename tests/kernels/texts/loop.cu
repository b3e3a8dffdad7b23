extern "C" __global__ void k(float *p, int n)
{
    float sum = 0.0f;
    #pragma unroll UNROLL
    for (int i = 0; i < n; ++i)
        sum = sum * p[i * 32 + threadIdx.x] + 1.0f;
    p[threadIdx.x] = sum;
}
