// /// matbench
// name = "bad-first-launch-only"
// summary = "Is right only in its first launch"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: totals are kept from launch to launch and never set back to zero, so
// only the first launch is right.

#ifndef THREADS
#define THREADS 256
#endif

__device__ float total[4096];

extern "C" __global__ void bad_first_launch_only(const float *A, const float *B, float *C,
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

    if (element < 4096) {
        total[element] += sum;
        sum = total[element];
    }
    C[element] = sum;
}
