// /// matbench
// name = "bad-stride-of-a"
// summary = "Steps through A as if its rows had N elements"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: A's rows are taken to be N long; they are K long.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_stride_of_a(const float *A, const float *B, float *C,
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
        sum += A[(size_t)row * N + k] * B[(size_t)k * N + column];

    C[element] = sum;
}
