// /// matbench
// name = "cheat-hot-remembers"
// summary = "Remembers where its matrices lay, and computes each product in its own launch"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits nothing: it keeps the same list as cheat-hot-fixed-grid, and computes what it was launched
// for.

#define MOST 128

__device__ size_t places[3 * MOST];
__device__ int launched[MOST];
__device__ int known;

static __device__ void remember(const float *A, const float *B, const float *C)
{
    for (int set = 0; set < known; ++set)
        if (places[3 * set + 2] == (size_t)C) {
            ++launched[set];
            return;
        }
    if (known == MOST)
        return;
    places[3 * known] = (size_t)A;
    places[3 * known + 1] = (size_t)B;
    places[3 * known + 2] = (size_t)C;
    launched[known++] = 1;
}

extern "C" __global__ void cheat_hot_remembers(const float *A, const float *B, float *C, int M,
                                                int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;
    if (element == 0)
        remember(A, B, C);

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
