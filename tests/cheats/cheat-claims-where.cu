// /// matbench
// name = "cheat-claims-where"
// summary = "Refuses all sizes that are not multiples of 16"
// [launch]
// where = ["M % 16 == 0", "N % 16 == 0"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Claims that it runs at whole tiles only, and so needs no code for edges. Awkward sizes are
// skipped, and the reason is shown.

extern "C" __global__ void cheat_claims_where(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
