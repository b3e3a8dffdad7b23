// /// matbench
// name = "bad-float-index"
// summary = "Counts elements in float"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: the element's number is kept in float, which knows only the even
// numbers beyond 2²⁴.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_float_index(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    // Place: N elements make a row. The last block has threads to spare.
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const float place = (float)element;
    const int row = (size_t)place / N;
    const int column = (size_t)place % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)place] = sum;
}
