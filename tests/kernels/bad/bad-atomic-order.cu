// /// matbench
// name = "bad-atomic-order"
// summary = "Adds up partial sums in order of arrival"
// requires = ["cuda"]
// [sweep]
// THREADS = [256]
// [launch]
// block = ["THREADS"]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: the threads add their parts of one element with atomics, in whatever
// order they arrive: right within rounding, but not the same twice.

extern "C" __global__ void bad_atomic_order(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    __shared__ float total;
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        for (int column = 0; column < N; ++column) {
            if (threadIdx.x == 0)
                total = 0.0f;
            __syncthreads();

            // Each thread adds up every blockDim.x-th term.
            float sum = 0.0f;
            for (int k = threadIdx.x; k < K; k += blockDim.x)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

            atomicAdd(&total, sum);
            __syncthreads();
            if (threadIdx.x == 0)
                C[(size_t)row * N + column] = total;
            __syncthreads();
        }
    }
}
