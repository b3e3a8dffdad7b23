__global__ void mineSIGNATURE
{
    const int t = threadIdx.x;
    for (int k = 0; k < K; ++k) {
        if (k > 3) {
            __shared__ float tile[4]
                                 [4];
            tile[0][0] = A[k];
        }
    }
}
