// /// matbench
// name = "bad-first-answer"
// summary = "Returns the answer of its first launch for ever"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["ceil_div(M * N, THREADS)"]
// ///

// The mistake, in thread-1d: what the first launch computed is kept and returned by every later
// one, whatever its inputs are.

#ifndef THREADS
#define THREADS 256
#endif

__device__ float answer[4096];
__device__ int has_answer[4096];

extern "C" __global__ void bad_first_answer(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    // Place: N elements make a row. The last block has threads to spare.
    const size_t element = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (element >= (size_t)M * N)
        return;
    if (element < 4096 && has_answer[element]) {
        C[element] = answer[element];
        return;
    }
    const int row = element / N;
    const int column = element % N;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[element] = sum;
    if (element < 4096) {
        answer[element] = sum;
        has_answer[element] = 1;
    }
}
