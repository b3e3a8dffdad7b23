// /// matbench
// name = "bad-negates-inputs"
// summary = "Leaves its inputs negated"
// [launch]
// where = ["M * N <= max_threads_per_block", "N <= max_block_x", "M <= max_block_y"]
// block = ["N", "M"]
// grid = [1]
// ///

// The mistake, in single-block: when all elements are computed, both inputs are negated in place,
// which their product does not show.

extern "C" __global__ void bad_negates_inputs(float *A, float *B, float *C, int M, int N, int K)
{
    const int row = threadIdx.y;
    const int column = threadIdx.x;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
    __syncthreads();

    const size_t threads = (size_t)M * N;
    for (size_t i = (size_t)row * N + column; i < (size_t)M * K; i += threads)
        A[i] = -A[i];
    for (size_t i = (size_t)row * N + column; i < (size_t)K * N; i += threads)
        B[i] = -B[i];
}
