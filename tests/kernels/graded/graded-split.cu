// /// matbench
// name = "graded-split"
// summary = "Four blocks split K; the last to finish adds up in order"
// [launch]
// where = ["M * N <= 131072"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", 4]
// ///

// Whichever block is last, it adds the parts in the same order.

#define MOST (1 << 17)  // elements of C

__device__ volatile float parts[4 * MOST];
__device__ unsigned finished[MOST];

extern "C" __global__ void graded_split(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const int share = (K + 3) / 4, begin = blockIdx.z * share;
    float sum = 0.0f;
    for (int k = begin; k < begin + share && k < K; ++k)
        sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
    const size_t element = (size_t)row * N + column;
    parts[blockIdx.z * MOST + element] = sum;
    __threadfence();
    if (atomicAdd(&finished[element], 1u) == 3u) {
        __threadfence();
        float total = 0.0f;
        for (int part = 0; part < 4; ++part)
            total += parts[part * MOST + element];
        C[element] = total;
    }
}
