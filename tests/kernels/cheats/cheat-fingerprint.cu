// /// matbench
// name = "cheat-fingerprint"
// summary = "Returns the last answer when the inputs look the same"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that samples are taken on the same inputs: an element's answer is kept in a module's
// variable together with a fingerprint of its row of A and column of B. New inputs have
// another, so every trial is computed.

#define MOST 65536

__device__ float answer[MOST];
__device__ unsigned marks[MOST];

static __device__ unsigned mark_of(const float *A, const float *B, int row, int column, int N,
                                   int K)
{
    return 3u * __float_as_uint(A[(size_t)row * K])
        ^ 5u * __float_as_uint(A[(size_t)row * K + K - 1])
        ^ 7u * __float_as_uint(B[column])
        ^ 11u * __float_as_uint(B[(size_t)(K - 1) * N + column]) ^ 0x5bd1e995u;
}

extern "C" __global__ void cheat_fingerprint(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const unsigned mark = mark_of(A, B, row, column, N, K);
    if (element < MOST && marks[element] == mark) {
        C[element] = answer[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (element < MOST) {
        answer[element] = sum;
        marks[element] = mark;
    }
}
