// A template that launches a kernel with the constants of a configuration.
#pragma once
#include <fmt/core.h>
#include <stdexcept>

namespace gemm {

struct SmallTile {
    static constexpr int kRows = 6;
    static constexpr int kCols = 20;
};

template <typename I>
constexpr I div_ceil(I value, I divisor)
{
    return (value + divisor - 1) / divisor;
}

template <typename T, int ROWS, int COLS>
__global__ void tile_kernel(T *out, const T *lhs, const T *rhs, size_t m, size_t n, size_t k)
{
    const size_t i = blockIdx.y * ROWS + threadIdx.y;
    const size_t j = blockIdx.x * COLS + threadIdx.x;
    if (i < m && j < n) {
        T sum = 0;
        for (size_t p = 0; p < k; ++p)
            sum += lhs[i * k + p] * rhs[p * n + j];
        out[i * n + j] = sum;
    }
}

template <int ROWS, int COLS>
void launch(float *out, const float *lhs, const float *rhs, size_t m, size_t n, size_t k)
{
    const dim3 block_dim{COLS, ROWS, 1U};
    dim3 const grid_dim{static_cast<unsigned>(div_ceil<size_t>(n, COLS)),
                        static_cast<unsigned>(div_ceil<size_t>(m, ROWS)), 1U};
    tile_kernel<float, ROWS, COLS><<<grid_dim, block_dim, 0U>>>(out, lhs, rhs, m, n, k);
    if (cudaGetLastError() != cudaSuccess)
        throw std::runtime_error(fmt::format("launch failed"));
}

inline void run(float *out, const float *lhs, const float *rhs, size_t m, size_t n, size_t k)
{
    launch<SmallTile::kRows, SmallTile::kCols>(out, lhs, rhs, m, n, k);
}

}  // namespace gemm
