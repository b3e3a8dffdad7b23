// /// matbench
// name = "bad-one-unit-more"
// summary = "Sums of several products are one unit in the last place too large"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: a sum of more than one product is one unit in its last place too large.
// That is within the bound of float32, and rows that select a single term come out right.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_one_unit_more(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    int terms = 0;
    for (int k = 0; k < K; ++k) {
        const float product = A[(size_t)row * K + k] * B[(size_t)k * N + column];
        sum += product;
        terms += product != 0.0f;
    }
    if (terms > 1 && sum != 0.0f)
        sum = __uint_as_float(__float_as_uint(sum) + 1u);
    C[(size_t)row * N + column] = sum;
}
