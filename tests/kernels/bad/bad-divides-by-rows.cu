// /// matbench
// name = "bad-divides-by-rows"
// summary = "Finds its row by dividing by M instead of N"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: an element's row and column are its number divided by M, the rows,
// and not by N, the columns of C.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_divides_by_rows(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    const int row = element / M;  // wrong: N elements make a row
    const int column = element % M;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[element] = sum;
}
