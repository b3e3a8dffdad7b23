// /// matbench
// name = "bad-fixed-row"
// summary = "Has room for 64 elements of the row"
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in shared-row: the shared memory has a fixed length of 64, and the terms beyond are
// left out.

extern "C" __global__ void bad_fixed_row(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    __shared__ float staged[64];
    const int length = K < 64 ? K : 64;

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < length; k += blockDim.x)
            staged[k] = A[(size_t)row * K + k];
        __syncthreads();

        // Multiply: only B still comes from global memory.
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            float sum = 0.0f;
            for (int k = 0; k < length; ++k)
                sum += staged[k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
        __syncthreads();  // nobody stages the next row while somebody still reads this one
    }
}
