// The sizes are those of a template's arguments, and B is transposed.
template <int M, int N, int K>
__global__ void arrays(double A[M][K], double B[N][K], double C[M][N])
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row < M && col < N) {
        double sum = 0;
        for (int k = 0; k < K; ++k)
            sum += A[row][k] * B[col][k];
        C[row][col] = sum;
    }
}

int main()
{
    double (*a)[40], (*b)[40], (*c)[96];
    arrays<64, 96, 40><<<dim3(6, 4), dim3(16, 16)>>>(a, b, c);
}
