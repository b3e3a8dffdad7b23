// /// matbench
// name = "graded-atomics"
// summary = "Four blocks add to C as they finish"
// beta = 1.0
// reads = ["C"]
// deterministic = false
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", 4]
// ///

// The four parts of K are added in any order. C is zero before the launch.

extern "C" __global__ void graded_atomics(const float *A, const float *B, float *C,
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
    atomicAdd(&C[(size_t)row * N + column], sum);
}
