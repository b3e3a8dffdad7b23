// A solution of a course's exercise, with the course's library.
#include <wb.h>

#define wbCheck(stmt)                                                \
    do {                                                             \
        cudaError_t err = stmt;                                      \
        if (err != cudaSuccess) {                                    \
            wbLog(ERROR, "Failed to run stmt ", #stmt);              \
            return -1;                                               \
        }                                                            \
    } while (0)

#define THREAD_X 40
#define THREAD_Y 4

__global__ void matrixMultiply(float *A, float *B, float *C, int numARows, int numAColumns,
                               int numBRows, int numBColumns, int numCRows, int numCColumns)
{
    int row = threadIdx.x / THREAD_X + THREAD_Y * blockIdx.y;
    int col = threadIdx.x % THREAD_X + THREAD_X * blockIdx.x;
    if (row < numCRows && col < numCColumns) {
        float value = 0;
        for (int i = 0; i < numAColumns; i++)
            value += A[row * numAColumns + i] * B[i * numBColumns + col];
        C[row * numCColumns + col] = value;
    }
}

int main(int argc, char **argv)
{
    wbArg_t args = wbArg_read(argc, argv);
    float *hostA, *hostB, *hostC, *deviceA, *deviceB, *deviceC;
    int numARows, numAColumns, numBRows, numBColumns, numCRows, numCColumns;

    hostA = (float *)wbImport(wbArg_getInputFile(args, 0), &numARows, &numAColumns);
    hostB = (float *)wbImport(wbArg_getInputFile(args, 1), &numBRows, &numBColumns);
    numCRows = numARows;
    numCColumns = numBColumns;
    hostC = (float *)malloc(numCRows * numCColumns * sizeof(float));
    wbCheck(cudaMalloc((void **)&deviceA, numARows * numAColumns * sizeof(float)));

    dim3 DimGrid(ceil(numCColumns / (float)THREAD_X), ceil((1.0 * numCRows) / THREAD_Y), 1);
    dim3 DimBlock(THREAD_X * THREAD_Y, 1, 1);
    matrixMultiply<<<DimGrid, DimBlock>>>(deviceA, deviceB, deviceC, numARows, numAColumns,
                                          numBRows, numBColumns, numCRows, numCColumns);
    cudaDeviceSynchronize();
    wbSolution(args, hostC, numCRows, numCColumns);
    free(hostA);
    return 0;
}
