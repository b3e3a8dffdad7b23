__global__ void matrixMultiply(float *A, float *B, float *C, int numARows, int numAColumns,
                               int numBRows, int numBColumns, int numCRows, int numCColumns)
{
    int Row = blockIdx.y * blockDim.y + threadIdx.y;
    int Col = blockIdx.x * blockDim.x + threadIdx.x;
    if (Row < numCRows && Col < numCColumns) {
        float Cvalue = 0.0;
        for (int k = 0; k < numAColumns; ++k)
            Cvalue += A[Row * numAColumns + k] * B[k * numBColumns + Col];
        C[Row * numCColumns + Col] = Cvalue;
    }
}
