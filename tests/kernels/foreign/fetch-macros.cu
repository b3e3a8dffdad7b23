#define OFFSET(row, col, ld) ((row) * (ld) + (col))
#define FLOAT4(pointer) (reinterpret_cast<float4 *>(&(pointer))[0])

__global__ void mySgemmV1(float *__restrict__ a, float *__restrict__ b, float *__restrict__ c,
                          const int M, const int N, const int K)
{
    const int BM = 64;
    const int BN = 64;
    const int BK = 8;
    const int TM = 4;
    const int TN = 4;

    const int bx = blockIdx.x;
    const int by = blockIdx.y;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tid = ty * blockDim.x + tx;

    __shared__ float s_a[BM][BK];
    __shared__ float s_b[BK][BN];
    float r_c[TM][TN] = {0.0};

    // 128 of the 256 threads fetch four numbers of each tile.
    const int a_row = tid >> 1, a_col = (tid & 1) << 2;
    const int b_row = tid >> 4, b_col = (tid & 15) << 2;

    for (int bk = 0; bk < (K + BK - 1) / BK; bk++) {
        if (tid < 128) {
            FLOAT4(s_a[a_row][a_col]) = FLOAT4(a[OFFSET(by * BM + a_row, bk * BK + a_col, K)]);
            FLOAT4(s_b[b_row][b_col]) = FLOAT4(b[OFFSET(bk * BK + b_row, bx * BN + b_col, N)]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++)
#pragma unroll
            for (int m = 0; m < TM; m++)
#pragma unroll
                for (int n = 0; n < TN; n++)
                    r_c[m][n] += s_a[ty * TM + m][k] * s_b[k][tx * TN + n];
        __syncthreads();
    }

    for (int i = 0; i < TM; i++) {
        const int row = by * BM + ty * TM + i, col = bx * BN + tx * TN;
        FLOAT4(c[OFFSET(row, col, N)]) = make_float4(r_c[i][0], r_c[i][1], r_c[i][2], r_c[i][3]);
    }
}
