// /// matbench
// name = "bad-no-guard-1d"
// summary = "The spare threads of the last block compute too"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: no thread asks whether its element exists, so the last block writes
// behind the end of C.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_no_guard_1d(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    // Place: N elements make a row.
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const int row = element / N;
    const int column = element % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[element] = sum;
}
