// A kernel of a tuner: the program that compiles it defines the sides of blocks and tiles.
extern "C" __global__ void matmul_kernel(float *C, const float *A, const float *B, int M, int N, int K)
{
    __shared__ float sA[block_size_y * tile_size_y][block_size_x];
    __shared__ float sB[block_size_x][block_size_x];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * block_size_x + tx;
    const int y = blockIdx.y * block_size_y * tile_size_y + ty;
    float sum[tile_size_y];
    for (int i = 0; i < tile_size_y; i++)
        sum[i] = 0.0f;
    for (int k = 0; k < K; k += block_size_x) {
        for (int i = 0; i < tile_size_y; i++) {
            const int row = y + i * block_size_y;
            sA[ty + i * block_size_y][tx] = row < M && k + tx < K ? A[row * K + k + tx] : 0.0f;
        }
        for (int i = ty; i < block_size_x; i += block_size_y)
            sB[i][tx] = k + i < K && x < N ? B[(k + i) * N + x] : 0.0f;
        __syncthreads();
        for (int kb = 0; kb < block_size_x; kb++)
            for (int i = 0; i < tile_size_y; i++)
                sum[i] += sA[ty + i * block_size_y][kb] * sB[kb][tx];
        __syncthreads();
    }
    for (int i = 0; i < tile_size_y; i++)
        if (y + i * block_size_y < M && x < N)
            C[(y + i * block_size_y) * N + x] = sum[i];
}
