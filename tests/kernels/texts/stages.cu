
extern "C" __global__ void k(float *p, int n, int count)
{
    int stage = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        p[stage * 32 + threadIdx.x] = (float)i;
        if (++stage == STAGES) {
            #pragma unroll 1
            for (int j = 0; j < count; ++j)
                ((volatile float *)p)[threadIdx.x] = 0.0f;
            stage = 0;
        }
    }
}
