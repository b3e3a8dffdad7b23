// /// matbench
// name = "bad-race-by-luck"
// summary = "Stages the next row while this one is still read"
// [sweep]
// THREADS = [256]
// [launch]
// where = ["K * 4 <= max_shared_bytes_per_block"]
// block = ["THREADS"]
// grid = ["ceil_div(M, 8)"]
// shared_bytes = "K * 4"
// ///

// The mistake, in shared-row: no barrier stands between reading a row and staging the next. A
// block that has one row is right by luck; the grid is small enough to give it several.

extern "C" __global__ void bad_race_by_luck(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    extern __shared__ float staged[];

    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        // Stage: the threads copy the row together.
        for (int k = threadIdx.x; k < K; k += blockDim.x)
            staged[k] = A[(size_t)row * K + k];
        __syncthreads();

        // Multiply: only B still comes from global memory.
        for (int column = threadIdx.x; column < N; column += blockDim.x) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += staged[k] * B[(size_t)k * N + column];

            C[(size_t)row * N + column] = sum;
        }
    }
}
