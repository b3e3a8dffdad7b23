// /// matbench
// name = "bad-tree-by-vectors"
// summary = "Trusts that neighbours run in step"
// entry = "bad_tree_by_vectors<64>"
// [launch]
// block = [64]
// grid = ["M"]
// ///

// The mistake, in block-1d: the last rounds of the tree have no barrier. A CPU that computes 16
// threads with one instruction gets them right.

template <int THREADS>
__global__ void bad_tree_by_vectors(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float sums[64];
    const int t = threadIdx.x;
    for (int column = 0; column < N; ++column) {
        float sum = 0.0f;
        for (int k = t; k < K; k += THREADS)
            sum += A[(size_t)blockIdx.x * K + k] * B[(size_t)k * N + column];
        sums[t] = sum;
        __syncthreads();
        for (int active = THREADS / 2; active > 0; active /= 2) {
            if (t < active)
                sums[t] += sums[t + active];
            if (active > 8)
                __syncthreads();
        }
        __syncthreads();
        if (t == 0)
            C[(size_t)blockIdx.x * N + column] = sums[0];
        __syncthreads();
    }
}
