// /// matbench
// name = "graded-chunks-4"
// summary = "Sums of 4 adjacent terms, added in order"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// 4 terms in order, then their sum onto the total.

extern "C" __global__ void graded_chunks_4(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float total = 0.0f;
    for (int start = 0; start < K; start += 4) {
        float sum = 0.0f;
        for (int k = start; k < start + 4 && k < K; ++k)
            sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
        total += sum;
    }
    C[(size_t)row * N + column] = total;
}
