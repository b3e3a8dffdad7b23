// /// matbench
// name = "bad-row-summed-by-one"
// summary = "Goes on to the next column while thread 0 still adds"
// [launch]
// block = [64]
// grid = ["min(M, max_grid_x)"]
// ///

// The mistake, in block-1d: the others may store their sums for the next column before thread 0 has
// added those of this one.

extern "C" __global__ void bad_row_summed_by_one(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    __shared__ float sums[64];
    for (int row = blockIdx.x; row < M; row += gridDim.x) {
        for (int column = 0; column < N; ++column) {
            float sum = 0.0f;
            for (int k = threadIdx.x; k < K; k += blockDim.x)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
            sums[threadIdx.x] = sum;
            __syncthreads();
            if (threadIdx.x == 0) {
                float total = 0.0f;
                for (int t = 0; t < blockDim.x; ++t)
                    total += sums[t];
                C[(size_t)row * N + column] = total;
            }
            // no barrier
        }
    }
}
