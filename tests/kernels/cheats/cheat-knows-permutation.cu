// /// matbench
// name = "cheat-knows-permutation"
// summary = "Finds out how the inputs were permuted and scaled, and permutes the old answer"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that new inputs made from old ones by permuting and scaling have an answer that
// follows from the old one. Rows and columns are recognised by their digits in any order; the
// term that was the first shows the sign and the power of two. What is not recognised is
// computed, so nothing but forgetting the old answer helps.

#define MOST 80

__device__ unsigned rows[MOST], columns[MOST];
__device__ float of_a[MOST], of_b[MOST], answer[MOST * MOST];
__device__ int stored;

// A value's digits, without its sign and its power of two, well mixed.
static __device__ unsigned mixed(float value)
{
    unsigned word = (__float_as_uint(value) & 0x7fffffu) * 2654435761u;
    word ^= word >> 15;
    return word * 2246822519u;
}

extern "C" __global__ void cheat_knows_permutation(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int known = stored == M * N;
    unsigned of_row = 0, of_column = 0;
    for (int k = 0; k < K; ++k) {
        of_row += mixed(A[(size_t)row * K + k]);
        of_column += mixed(B[(size_t)k * N + column]);
    }
    if (known) {
        int i = 0, j = 0;
        while (i < M && rows[i] != of_row)
            ++i;
        while (j < N && columns[j] != of_column)
            ++j;
        for (int k = 0; i < M && j < N && k < K; ++k) {
            const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
            if (mixed(a) == mixed(of_a[i]) && mixed(b) == mixed(of_b[j])) {
                C[element] = answer[i * N + j] * ((a / of_a[i]) * (b / of_b[j]));
                return;
            }
        }
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
    if (known || M > MOST || N > MOST)
        return;
    answer[element] = sum;
    if (column == 0) {
        rows[row] = of_row;
        of_a[row] = A[(size_t)row * K];
    }
    if (row == 0) {
        columns[column] = of_column;
        of_b[column] = B[column];
    }
    __threadfence();
    atomicAdd(&stored, 1);
}
