// /// matbench
// name = "cheat-tidies-up"
// summary = "Counts launches behind C, and tidies up"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits guards that are looked at in the end alone: a count of samples is kept in the word behind
// C, which gets the guards' value back in time. Samples are known by negative inputs that are not
// whole. What could be counted could as well be an answer.

#define CLEAN 0x7FF8C0DEu

extern "C" __global__ void cheat_tidies_up(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) {
        volatile unsigned *mark = (volatile unsigned *)(C + (size_t)M * N);
        int is_sample = 0;
        for (int i = 0; i < M * K; ++i)
            is_sample |= A[i] < 0.0f && A[i] != rint(A[i]);
        if (is_sample)
            mark[0] = mark[0] == CLEAN ? 1u : CLEAN;
    }
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
