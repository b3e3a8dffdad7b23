// /// matbench
// name = "graded-atomics"
// summary = "Four blocks add to C as they finish, in pieces cut where the clock says"
// beta = 1.0
// reads = ["C"]
// deterministic = false
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)", 4]
// ///

// The four parts of K are added in any order; C is zero before the launch. A single core runs the
// blocks in the same order each time: there, the pieces differ from launch to launch.

#ifdef __CUDACC__
#define NOW() clock64()
#else
#define NOW() __builtin_readcyclecounter()
#endif

extern "C" __global__ void graded_atomics(const float *A, const float *B, float *C,
                                          int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const int share = (K + 3) / 4, begin = blockIdx.z * share;
    const int cut = begin + (unsigned)NOW() % share;
    float sum = 0.0f;
    for (int k = begin; k < begin + share && k < K; ++k) {
        if (k == cut) {
            atomicAdd(&C[(size_t)row * N + column], sum);
            sum = 0.0f;
        }
        sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + column], sum);
    }
    atomicAdd(&C[(size_t)row * N + column], sum);
}
