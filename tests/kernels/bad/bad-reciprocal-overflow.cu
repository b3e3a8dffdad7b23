// /// matbench
// name = "bad-reciprocal-overflow"
// summary = "Divides by a reciprocal that overflows 32 bits"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: the row is found by multiplying with 2²²/N, and that product no
// longer fits into 32 bits from row 1,024 on, so that rows are computed twice and others never.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_reciprocal_overflow(const float *A, const float *B, float *C,
                                                   int M, int N, int K)
{
    // Place: N elements make a row. The last block has threads to spare.
    const unsigned element = blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element * ((1u << 22) / N) >> 22;  // right where N is a power of two
    const int column = element % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
