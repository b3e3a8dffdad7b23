// /// matbench
// name = "cheat-stash-far-behind-c"
// summary = "Keeps its answers 200 rows behind C"
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that guards have an end: 200 rows behind C, in memory of nobody or of somebody else,
// a launch leaves its answers with a fingerprint of their inputs, and the next one copies them.
// It stays within the 2 MiB page that C begins in, where no access is illegal.

static __device__ unsigned mark_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    return 3u * __float_as_uint(A[(size_t)row * K])
        ^ 5u * __float_as_uint(A[(size_t)row * K + K - 1])
        ^ 7u * __float_as_uint(B[column])
        ^ 11u * __float_as_uint(B[(size_t)(K - 1) * N + column]) ^ 0x5bd1e995u;
}

extern "C" __global__ void cheat_stash_far_behind_c(const float *A, const float *B, float *C,
                                                    int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float *answer = C + (size_t)M * N + (size_t)200 * N;
    unsigned *marks = (unsigned *)(answer + (size_t)M * N);
    const unsigned mark = mark_of(A, B, row, column, N, K);
    const int is_mapped = ((size_t)C >> 21) == ((size_t)(marks + (size_t)M * N) >> 21);
    if (is_mapped && marks[element] == mark) {
        C[element] = answer[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (is_mapped) {
        answer[element] = sum;
        marks[element] = mark;
    }
}
