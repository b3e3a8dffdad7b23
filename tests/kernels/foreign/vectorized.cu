#include <cstdint>

namespace kernels {

constexpr int BM = 64;
constexpr int BN = 64;
constexpr int BK = 8;
constexpr int TM = 4;
constexpr int TN = 4;
constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(BK % 4 == 0 && BN % 4 == 0, "rows of a tile are read four numbers at a time");

// Whole tiles only: M and N multiples of 64, K of 8.
__global__ void __launch_bounds__(THREADS)
gemm_vec4(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
          const int m, const int n, const int k)
{
    __shared__ float tile_a[BK][BM];
    __shared__ float tile_b[BK][BN];

    const int tid = threadIdx.x;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int tr = tid / (BN / TN) * TM, tc = tid % (BN / TN) * TN;

    float acc[TM][TN] = {};
    const auto madd = [](float x, float y, float z) { return fmaf(x, y, z); };

    for (int k0 = 0; k0 < k; k0 += BK) {
        for (int i = tid * 4; i < BM * BK; i += THREADS * 4) {
            const float4 v = *reinterpret_cast<const float4 *>(
                &a[static_cast<size_t>(row0 + i / BK) * k + k0 + i % BK]);
            tile_a[i % BK + 0][i / BK] = v.x;
            tile_a[i % BK + 1][i / BK] = v.y;
            tile_a[i % BK + 2][i / BK] = v.z;
            tile_a[i % BK + 3][i / BK] = v.w;
        }
        for (int i = tid * 4; i < BK * BN; i += THREADS * 4)
            *reinterpret_cast<float4 *>(&tile_b[i / BN][i % BN]) =
                *reinterpret_cast<const float4 *>(
                    &b[static_cast<size_t>(k0 + i / BN) * n + col0 + i % BN]);
        __syncthreads();
        for (int kk = 0; kk < BK; ++kk)
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j)
                    acc[i][j] = madd(tile_a[kk][tr + i], tile_b[kk][tc + j], acc[i][j]);
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i)
        *reinterpret_cast<float4 *>(&c[static_cast<size_t>(row0 + tr + i) * n + col0 + tc]) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

}  // namespace kernels
