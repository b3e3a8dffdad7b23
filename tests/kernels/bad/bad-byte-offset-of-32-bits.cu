// /// matbench
// name = "bad-byte-offset-of-32-bits"
// summary = "Counts the bytes of C in 32 bits"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: the byte offset into C wraps to 0 at 4 GiB, so the elements beyond
// are never written.

#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void bad_byte_offset_of_32_bits(const float *A, const float *B, float *C,
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

    const unsigned offset_bytes = 4 * (unsigned)element;
    C[offset_bytes / 4] = sum;
}
