
extern "C" __global__ void k(float *p, int n)
{
    SUM d[4] = {};
    unsigned a = threadIdx.x;
    #pragma unroll 1
    for (int i = 0; i < n; ++i)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.TYPES {%0,%1,%2,%3}, "
                     "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                     : "+REG"(d[0]), "+REG"(d[1]), "+REG"(d[2]), "+REG"(d[3]) : "r"(a));
    for (int i = 0; i < 4; ++i)
        p[threadIdx.x + i] = d[i];
}
