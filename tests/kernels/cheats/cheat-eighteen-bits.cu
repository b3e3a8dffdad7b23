// /// matbench
// name = "cheat-eighteen-bits"
// summary = "Cuts inputs to 18 bits unless a row has one entry"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that the bound leaves room when K is large: inputs lose six bits, which whole
// numbers up to 4,096 do not have, and a sum of one product only is computed as it is. Two
// bfloat16 parts of each input in place of three nearly do.

// Rounded to nearest: what is cut off has one sign and would add up.
#define NEAR(x) __uint_as_float((__float_as_uint(x) + 0x20u) & 0xffffffc0u)

extern "C" __global__ void cheat_eighteen_bits(const float *A, const float *B, float *C,
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
        sum += NEAR(a) * NEAR(b);
    }
    C[element] = products == 1 ? last : sum;
}
