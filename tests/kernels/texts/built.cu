
#ifndef WIDTH
#define WIDTH 4096
#endif
__global__ void built(float *C, const float *A, const float *B) {
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += A[row * WIDTH + k] * B[k * WIDTH + column];
    C[row * WIDTH + column] = sum;
}
