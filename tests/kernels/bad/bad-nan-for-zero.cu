// /// matbench
// name = "bad-nan-for-zero"
// summary = "Takes a sign by division, which fails at zero"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: the sign of A's value is the value divided by its size, and zero by
// zero is NaN.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_nan_for_zero(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    // Place: N elements make a row. The last block has threads to spare.
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element / N;
    const int column = element % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k];
        sum += a / fabsf(a) * (fabsf(a) * B[(size_t)k * N + column]);
    }

    C[element] = sum;
}
