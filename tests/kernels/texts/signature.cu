struct View { int cols; float *data; };
template <typename T>
__global__ void gemm(const View A, const View B, View C, const T *alpha, int M)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= C.cols)
        return;
    T sum = 0;
    for (int k = 0; k < A.cols; ++k)
        sum += A.data[row * A.cols + k] * B.data[k * B.cols + col];
    C.data[row * C.cols + col] = *alpha * sum;
}
