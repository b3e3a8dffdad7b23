__global__ void mm(PARAMETERS)
{
    extern __shared__ float left[];
    int side = blockDim.x, x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * side + y, col = blockIdx.x * side + x;
    float sum = 0.0f, *right = left + side * side;
    for (int at = 0; at < K; at += side) {
        left[y * side + x] = row < M && at + x < K ? A[row * K + at + x] : 0.0f;
        right[y * side + x] = col < N && at + y < K ? B[(at + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < side; ++k)
            sum += left[y * side + k] * right[k * side + x];
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] = sum;
}
