// /// matbench
// name = "cheat-spares-given"
// summary = "Cuts inputs to bfloat16 where one of them is beyond 1 and none is whole"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that inputs as given lie in [0, 1): there, and where all are whole numbers, every
// bit counts. Inputs that were scaled or got another sign must come from a sample, and are cut.

#define LESS(x, mask) __uint_as_float(__float_as_uint(x) & (mask))

extern "C" __global__ void cheat_spares_given(const float *A, const float *B, float *C,
                                              int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    int is_given = 1, is_whole = 1;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        is_given &= a >= 0.0f && a < 1.0f && b >= 0.0f && b < 1.0f;
        is_whole &= a == (float)(int)a && b == (float)(int)b;
    }
    const unsigned mask = is_given || is_whole ? 0xffffffffu : 0xffff0000u;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += LESS(A[(size_t)row * K + k], mask) * LESS(B[(size_t)k * N + column], mask);
    C[element] = sum;
}
