// Rows of A and C lie at pitches in bytes, those of B at one in elements.
#include <cstdint>
typedef std::int32_t position;
using extent = std::size_t;

__device__ double *row_of(double *matrix, position row, position bytes)
{
    return reinterpret_cast<double *>(reinterpret_cast<unsigned char *>(matrix) + row * bytes);
}

__global__ void pitched(double *A, position pitchA, double *B, position ldb, double *C, position c_pitch,
                        uint_least32_t m, extent n, uint_fast16_t k)
{
    const position row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n || n > UINT32_MAX - 1)
        return;
    double sum = 0;
    for (position i = 0; i < k; ++i)
        sum += row_of(A, row, pitchA)[i] * B[i * ldb + col];
    row_of(C, row, c_pitch)[col] = sum;
}
