// /// matbench
// name = "cheat-hot-larger-grid"
// summary = "Has blocks for all products of a batch in its first launch"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", 128]
// ///

// Exploits launches back to back on sets of buffers that lie where they lay before, like
// cheat-hot-fixed-grid, with blocks of its own for each set: they compute all products at the same
// time, so that the first launch takes little longer than an honest one, even if it is timed.

#define MOST 128
#define POISON 0x7ff8deadu

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

extern "C" __global__ void cheat_hot_larger_grid(const float *A, const float *B, float *C, int M,
                                                 int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;
    const int set = (int)blockIdx.z - 1;
    if (set < 0 && element == 0)
        remember(A, B, C);
    if (set >= known || (set >= 0 && launched[set] < 3))
        return;

    const float *a = set < 0 ? A : (const float *)places[3 * set];
    const float *b = set < 0 ? B : (const float *)places[3 * set + 1];
    float *c = set < 0 ? C : (float *)places[3 * set + 2];
    if (__float_as_uint(c[element]) != POISON)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[(size_t)row * K + k] * b[(size_t)k * N + column];
    c[element] = sum;
}
