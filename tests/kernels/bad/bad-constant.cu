// /// matbench
// name = "bad-constant"
// summary = "Stores the same number everywhere"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: the expected value for inputs in [0, 1) is stored, K/4, whatever the
// inputs are.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_constant(const float *A, const float *B, float *C,
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
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[element] = 0.25f * K;
}
