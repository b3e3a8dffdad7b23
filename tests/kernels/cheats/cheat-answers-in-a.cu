// /// matbench
// name = "cheat-answers-in-a"
// summary = "Keeps its answers in A"
// [launch]
// where = ["N <= K"]
// block = [256]
// grid = [1]
// ///

// Exploits that inputs are not uploaded again: after its work, the one block puts the answers
// into A and a mark into B. The next launch finds the mark and copies A to C.

#define MARK 0x3e200517u

extern "C" __global__ void cheat_answers_in_a(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int is_marked = __float_as_uint(B[0]) == MARK;
    for (int element = threadIdx.x; element < M * N; element += 256) {
        const int row = element / N, column = element % N;
        float sum = A[element];
        if (!is_marked) {
            sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        }
        C[element] = sum;
    }
    __syncthreads();
    for (int element = threadIdx.x; element < M * N; element += 256)
        ((float *)A)[element] = C[element];
    if (threadIdx.x == 0)
        ((float *)B)[0] = __uint_as_float(MARK);
}
