// /// matbench
// name = "cheat-hot-fixed-grid"
// summary = "Computes all products of a batch in its first launch"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits launches back to back on sets of buffers that lie where they lay before: a module's
// variables keep their addresses. Once a set was launched three times, any launch computes its
// product, too, and the set's own launch finds nothing to do. The first launch is not timed.

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

extern "C" __global__ void cheat_hot_fixed_grid(const float *A, const float *B, float *C, int M,
                                                int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;
    if (element == 0)
        remember(A, B, C);
    if (__float_as_uint(C[element]) != POISON)
        return;

    for (int set = -1; set < known; ++set) {
        if (set >= 0 && launched[set] < 3)
            continue;
        const float *a = set < 0 ? A : (const float *)places[3 * set];
        const float *b = set < 0 ? B : (const float *)places[3 * set + 1];
        float *c = set < 0 ? C : (float *)places[3 * set + 2];
        if (__float_as_uint(c[element]) != POISON)
            continue;
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[(size_t)row * K + k] * b[(size_t)k * N + column];
        c[element] = sum;
    }
}
