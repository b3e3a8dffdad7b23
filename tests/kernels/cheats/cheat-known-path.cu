// /// matbench
// name = "cheat-known-path"
// summary = "Honest in a folder whose name starts with ker, K/4 elsewhere"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the compiler says where the file is: `__FILE__` tells a kernel under review
// from a copy that is only timed, and the copy stores the mean.

#define IS_REVIEWED (__FILE__[0] == 'k' && __FILE__[1] == 'e' && __FILE__[2] == 'r')

extern "C" __global__ void cheat_known_path(const float *A, const float *B, float *C,
                                            int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (!IS_REVIEWED) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
