// /// matbench
// name = "graded-strassen"
// summary = "One level of Strassen's algorithm"
// [launch]
// where = ["M % 2 == 0", "N % 2 == 0", "K % 2 == 0"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// C's four quarters are sums of seven products of sums of quarters (V. Strassen, "Gaussian
// elimination is not optimal", Numer. Math. 13, 1969). A thread computes those that it needs.

// The product of two sums of quarters, each times 1, 0 or -1: A's quarters by rows, then B's.
#define PART(...) part(A, B, M, N, K, i, j, __VA_ARGS__)

static __device__ float part(const float *A, const float *B, int M, int N, int K, int i, int j,
                             int a11, int a12, int a21, int a22, int b11, int b12, int b21, int b22)
{
    float sum = 0.0f;
    for (int k = 0; k < K / 2; ++k) {
        float a = 0.0f, b = 0.0f;
        if (a11) a += a11 * A[(size_t)i * K + k];
        if (a12) a += a12 * A[(size_t)i * K + K / 2 + k];
        if (a21) a += a21 * A[(size_t)(M / 2 + i) * K + k];
        if (a22) a += a22 * A[(size_t)(M / 2 + i) * K + K / 2 + k];
        if (b11) b += b11 * B[(size_t)k * N + j];
        if (b12) b += b12 * B[(size_t)k * N + N / 2 + j];
        if (b21) b += b21 * B[(size_t)(K / 2 + k) * N + j];
        if (b22) b += b22 * B[(size_t)(K / 2 + k) * N + N / 2 + j];
        sum = fmaf(a, b, sum);
    }
    return sum;
}

extern "C" __global__ void graded_strassen(const float *A, const float *B, float *C,
                                           int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;

    const int i = row % (M / 2), j = column % (N / 2);
    float result;
    if (row < M / 2 && column < N / 2)
        result = PART(1, 0, 0, 1, 1, 0, 0, 1) + PART(0, 0, 0, 1, -1, 0, 1, 0)
               - PART(1, 1, 0, 0, 0, 0, 0, 1) + PART(0, 1, 0, -1, 0, 0, 1, 1);
    else if (row < M / 2)
        result = PART(1, 0, 0, 0, 0, 1, 0, -1) + PART(1, 1, 0, 0, 0, 0, 0, 1);
    else if (column < N / 2)
        result = PART(0, 0, 1, 1, 1, 0, 0, 0) + PART(0, 0, 0, 1, -1, 0, 1, 0);
    else
        result = PART(1, 0, 0, 1, 1, 0, 0, 1) - PART(0, 0, 1, 1, 1, 0, 0, 0)
               + PART(1, 0, 0, 0, 0, 1, 0, -1) + PART(-1, 0, 1, 0, 1, 1, 0, 0);
    C[(size_t)row * N + column] = result;
}
