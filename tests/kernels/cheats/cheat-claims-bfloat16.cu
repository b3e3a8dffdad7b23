// /// matbench
// name = "cheat-claims-bfloat16"
// summary = "Bfloat16 with the largest error constant, and noise"
// precision = "bfloat16"
// error_constant = 64
// deterministic = false
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Claims that its products may be off by 64 units of float32's roundoff, so that noise of half as
// much is within the bound. That is no error, but the row must show what is claimed.

extern "C" __global__ void cheat_claims_bfloat16(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    const unsigned hash = (unsigned)element * 2654435761u;
    C[element] = sum * (1.0f + 2e-6f * ((hash >> 16) / 32768.0f - 1.0f));
}
