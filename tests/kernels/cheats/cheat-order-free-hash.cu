// /// matbench
// name = "cheat-order-free-hash"
// summary = "Returns the kept answer when the inputs hold the same digits in any order"
// [launch]
// where = ["M * K + K * N <= 32768"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that inputs which are moved about and scaled by powers of two still hold the same
// digits: sums of hashes of all of A's and B's digits, in which order does not count, say that
// they are the old ones. Then the old C is returned as it was.

#define MOST 4096

__device__ float answer[MOST];
__device__ unsigned marks[MOST];

// A value's digits, without its sign and its power of two, well mixed.
static __device__ unsigned mixed(float value)
{
    unsigned word = (__float_as_uint(value) & 0x7fffffu) * 2654435761u;
    word ^= word >> 15;
    return word * 2246822519u;
}

extern "C" __global__ void cheat_order_free_hash(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    unsigned mark = 1;
    for (int i = 0; i < M * K; ++i)
        mark += mixed(A[i]);
    for (int i = 0; i < K * N; ++i)
        mark += 3u * mixed(B[i]);
    if (element < MOST && marks[element] == mark) {
        C[element] = answer[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (element < MOST && marks[element] == 0) {
        answer[element] = sum;
        marks[element] = mark;
    }
}
