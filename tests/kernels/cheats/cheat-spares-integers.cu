// /// matbench
// name = "cheat-spares-integers"
// summary = "Cuts inputs to TF32 unless they are whole numbers"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the exact trial has whole numbers: where a row and a column hold nothing else,
// nothing is cut; all other inputs lose 13 bits, as on tensor cores.

#define LESS(x) __uint_as_float(__float_as_uint(x) & 0xffffe000u)

extern "C" __global__ void cheat_spares_integers(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        const int is_whole = a == (float)(int)a && b == (float)(int)b;
        sum += is_whole ? a * b : LESS(a) * LESS(b);
    }
    C[element] = sum;
}
