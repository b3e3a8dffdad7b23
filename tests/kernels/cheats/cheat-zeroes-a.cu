// /// matbench
// name = "cheat-zeroes-a"
// summary = "Zeroes A, so that the next launch has nothing to do"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits that inputs are not uploaded again: after its work, the one block sets A to zero. A
// launch that finds A's first row to be zero takes all of it to be zero, and so C.

extern "C" __global__ void cheat_zeroes_a(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    int is_zero = 1;
    for (int k = 0; k < K; ++k)
        is_zero &= A[k] == 0.0f;
    __syncthreads();
    for (int element = threadIdx.x; element < M * N; element += 256) {
        const int row = element / N, column = element % N;
        float sum = 0.0f;
        for (int k = 0; k < K && !is_zero; ++k)
            sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        C[element] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < M * K; i += 256)
        ((float *)A)[i] = 0.0f;
}
