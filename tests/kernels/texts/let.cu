// /// matbench
// name = "halves"
// args = ["A", "B", "C", "M", "N", "K", "BLOCKS"]
// [sweep]
// TILE = [8, 16]
// [let]
// HALF = "TILE // 2"
// BLOCKS = "2 * HALF + 1"
// [launch]
// where = ["BLOCKS > 9"]
// block = ["TILE", "HALF"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// shared_bytes = "BLOCKS"
// [model]
// global_loads = "M * N * K * HALF"
// ///

extern "C" __global__ void halves(const float *A, const float *B, float *C,
                                  int M, int N, int K, int blocks)
{
    const int column = blockIdx.x * TILE + threadIdx.x;
    for (int half = 0; half < TILE / HALF; ++half) {
        const int row = blockIdx.y * TILE + threadIdx.y + half * HALF;
        float sum = 0.0f;
        for (int k = 0; k < K && row < M && column < N; ++k)
            sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
        if (row < M && column < N)
            C[(size_t)row * N + column] = blocks == BLOCKS && BLOCKS == 2 * HALF + 1 ? sum : 0.0f;
    }
}
