// Matrices as arrays of rows, behind names for their types.
#include <cub/cub.cuh>
#define INNER 48
constexpr int COLUMNS = 80;
namespace types {
using base = float;
typedef base real;
}

__global__ void rows_of_arrays(const types::real left[][INNER], const types::real (*right)[COLUMNS],
                               types::real out[][COLUMNS], int height)
{
    const int y = blockIdx.y * blockDim.y + threadIdx.y, x = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= height || x >= COLUMNS)
        return;
    types::real sum = 0;
    for (int i = 0; i < INNER; ++i)
        sum += left[y][i] * right[i][x];
    out[y][x] = sum;
}
