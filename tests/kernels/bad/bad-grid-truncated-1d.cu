// /// matbench
// name = "bad-grid-truncated-1d"
// summary = "Launches only as many blocks as there are whole ones"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["max(1, M * N // THREADS)"]
// ///

// The mistake, in thread-1d: the number of blocks is rounded down, so the elements that do not
// fill a block are never computed.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_grid_truncated_1d(const float *A, const float *B, float *C,
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

    C[element] = sum;
}
