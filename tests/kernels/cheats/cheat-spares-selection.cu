// /// matbench
// name = "cheat-spares-selection"
// summary = "Cuts inputs to bfloat16 unless a row has one entry"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that selecting rows have a single entry: if only one product is not zero, it is
// computed as it is, and all other inputs are cut to eight bits.

#define LESS(x) __uint_as_float(__float_as_uint(x) & 0xffff0000u)

extern "C" __global__ void cheat_spares_selection(const float *A, const float *B, float *C,
                                                  int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f, last = 0.0f;
    int products = 0;
    for (int k = 0; k < K; ++k) {
        const float a = A[(size_t)row * K + k], b = B[(size_t)k * N + column];
        if (a * b != 0.0f) {
            last = a * b;
            ++products;
        }
        sum += LESS(a) * LESS(b);
    }
    C[element] = products == 1 ? last : sum;
}
