__global__ void mm(PARAMETERS)
{
    int row = blockIdx.y * ROWS + threadIdx.y, col = blockIdx.x * COLUMNS + threadIdx.x;
    if (CHECKED) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[row * K + k] * B[k * WIDTH + col];
        C[row * N + col] = sum;
    }
}
