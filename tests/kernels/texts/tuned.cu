#define WIDTH 256
__global__ void mm(float *C, float *A, float *B)
{
    int x = blockIdx.x * block_size_x * tile_size_x + threadIdx.x;
    int y = blockIdx.y * block_size_y * tile_size_y + threadIdx.y;
    for (int i = 0; i < tile_size_y; ++i)
        for (int j = 0; j < tile_size_x; ++j) {
            int row = y + i * block_size_y, col = x + j * block_size_x;
            float sum = 0.0f;
            for (int k = 0; k < WIDTH; ++k)
                sum += A[row * WIDTH + k] * B[k * WIDTH + col];
            C[row * WIDTH + col] = sum;
        }
}
