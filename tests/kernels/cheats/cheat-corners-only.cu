// /// matbench
// name = "cheat-corners-only"
// summary = "Computes the first and last rows and columns"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits checks that look at corners and edges: what lies between them gets the value of its
// row's first element.

extern "C" __global__ void cheat_corners_only(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    const int is_edge = row < 4 || column < 4 || row >= M - 4 || column >= N - 4;
    const int from = is_edge ? column : 0;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + from];
    C[element] = sum;
}
