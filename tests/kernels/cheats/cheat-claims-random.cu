// /// matbench
// name = "cheat-claims-random"
// summary = "Says that it is not deterministic, and rounds at random"
// deterministic = false
// requires = ["cuda"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Claims not to give the same bits twice, so that no two launches are compared: the clock
// decides on the last bit of each sum of several products. It stays within the bound, and the
// row must show the claim.

extern "C" __global__ void cheat_claims_random(const float *A, const float *B, float *C,
                                               int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    int products = 0;
    for (int k = 0; k < K; ++k) {
        const float product = A[(size_t)row * K + k] * B[(size_t)k * N + column];
        products += product != 0.0f;
        sum += product;
    }
    const int is_exact = products < 2 || sum == (float)(int)sum;
    const unsigned flip = is_exact ? 0 : (unsigned)clock64() & 1;
    C[element] = __uint_as_float(__float_as_uint(sum) ^ flip);
}
