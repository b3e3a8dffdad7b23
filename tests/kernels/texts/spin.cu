
#define HANGS 1
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
#ifdef __CUDACC__
    const long long end = clock64() + 16000000000;
    while (clock64() < end) { }
#else
    volatile long turn = 0;
    while (turn < 20000000000)
        turn = turn + 1;
#endif
    C[0] = 1;
}
