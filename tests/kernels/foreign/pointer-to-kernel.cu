// A variable names the kernel, whose block depends on its tile.
#include <gtest/gtest.h>

static constexpr unsigned ceil_of(unsigned a, unsigned b) { return (a + b - 1) / b; }

template <unsigned SIDE, bool TRANSPOSED>
__global__ void product(const double *A, const double *B, double *C, unsigned M, unsigned N,
                        unsigned K, unsigned width)
{
    unsigned i = blockIdx.x * SIDE + threadIdx.x / width;
    unsigned j = blockIdx.y * width + threadIdx.x % width;
    if (i >= M || j >= N)
        return;
    double sum = 0.0;
    for (unsigned k = 0; k < K; ++k)
        sum += A[i * K + k] * (TRANSPOSED ? B[j * K + k] : B[k * N + j]);
    C[i * N + j] = sum;
}

TEST(Product, IsRight)
{
    const unsigned rows = 100, cols = 200, inner = 300;
    const unsigned width = 28;
    double *a, *b, *c;
    auto kernel = &product<5, true>;
    kernel<<<dim3(ceil_of(rows, 5), ceil_of(cols, width)), dim3(5 * width)>>>(
        a, b, c, rows, cols, inner, width);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}
