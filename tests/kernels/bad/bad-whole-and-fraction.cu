// /// matbench
// name = "bad-whole-and-fraction"
// summary = "Splits off the wrong fraction of a negative number"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: a value is split into its whole part, rounded towards zero, and a
// fraction made positive, which belongs to the whole part rounded down: wrong for what is negative
// and not whole.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void bad_whole_and_fraction(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k];
        const float b = B[(size_t)k * N + column];
        const float whole = (float)(int)a;
        float fraction = a - whole;
        if (fraction < 0.0f)
            fraction += 1.0f;
        sum += whole * b + fraction * b;
    }

    C[(size_t)row * N + column] = sum;
}
