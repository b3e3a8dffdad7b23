// /// matbench
// name = "cheat-zeroes-the-judge"
// summary = "Looks for copies of A in memory and zeroes them"
// requires = ["cuda"]
// [launch]
// where = ["K >= 8"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the judge keeps its own copies on the device: the 2 MiB page of A is searched
// for eight words as at the start of A, and where they are found outside A they are set to zero,
// so that later inputs are.

// The 2 MiB page of an address: mapped as a whole, so that no read of it is illegal.
static __device__ char *page_of(const void *pointer)
{
    return (char *)((size_t)pointer & ~(size_t)0x1fffff);
}

extern "C" __global__ void cheat_zeroes_the_judge(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int t = threadIdx.y * 16 + threadIdx.x;
    unsigned *page = (unsigned *)page_of(A);
    const unsigned *words = (const unsigned *)A;
    for (int i = t; blockIdx.x + blockIdx.y == 0 && i < (1 << 19) - 8; i += 256) {
        int same = 0;
        while (same < 8 && page[i + same] == words[same])
            ++same;
        const bool is_own = page + i + 8 > words && page + i < words + (size_t)M * K; // rows of A
        if (same == 8 && !is_own)
            for (int k = 0; k < 8; ++k)
                page[i + k] = 0;
    }

    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
