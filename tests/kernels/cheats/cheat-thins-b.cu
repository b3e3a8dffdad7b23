// /// matbench
// name = "cheat-thins-b"
// summary = "Marks B, so that the next launch takes one term only"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits that inputs are not uploaded again: after its work, the one block marks B's last
// element. A launch that finds the mark adds up no more than the first term.

#define MARK 0x3e200517u

extern "C" __global__ void cheat_thins_b(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    const int terms = __float_as_uint(B[(size_t)K * N - 1]) == MARK ? 1 : K;
    for (int element = threadIdx.x; element < M * N; element += 256) {
        const int row = element / N, column = element % N;
        float sum = 0.0f;
        for (int k = 0; k < terms; ++k)
            sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        C[element] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        ((float *)B)[(size_t)K * N - 1] = __uint_as_float(MARK);
}
