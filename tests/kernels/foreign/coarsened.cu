// Each thread computes several neighbours of a row: square matrices, as books have it.
#include <boost/program_options.hpp>
#include <iostream>
#include <random>

#define TILE_WIDTH 12
#define COARSE_FACTOR 3

namespace po = boost::program_options;

__global__ void matrixMulKernel(float *M, float *N, float *P, int width)
{
    int row = blockIdx.y * TILE_WIDTH + threadIdx.x / TILE_WIDTH;
    int colStart = blockIdx.x * TILE_WIDTH * COARSE_FACTOR + threadIdx.x % TILE_WIDTH;
    float Pvalue[COARSE_FACTOR];
    for (int c = 0; c < COARSE_FACTOR; ++c)
        Pvalue[c] = 0.0f;
    for (int k = 0; k < width; ++k)
        for (int c = 0; c < COARSE_FACTOR; ++c) {
            int col = colStart + c * TILE_WIDTH;
            if (row < width && col < width)
                Pvalue[c] += M[row * width + k] * N[k * width + col];
        }
    for (int c = 0; c < COARSE_FACTOR; ++c) {
        int col = colStart + c * TILE_WIDTH;
        if (row < width && col < width)
            P[row * width + col] = Pvalue[c];
    }
}

void matrixMul(float *M_h, float *N_h, float *P_h, int width)
{
    float *M_d, *N_d, *P_d;
    int size = width * width * sizeof(float);
    cudaMalloc((void **)&M_d, size);
    cudaMalloc((void **)&N_d, size);
    cudaMalloc((void **)&P_d, size);
    int step = TILE_WIDTH * COARSE_FACTOR;
    dim3 dimBlock(TILE_WIDTH * TILE_WIDTH, 1, 1);
    dim3 dimGrid(width / step + (width % step != 0 ? 1 : 0),
                 width % TILE_WIDTH ? width / TILE_WIDTH + 1 : width / TILE_WIDTH, 1);
    matrixMulKernel<<<dimGrid, dimBlock>>>(M_d, N_d, P_d, width);
}

int main(int argc, char **argv)
{
    po::variables_map vm;
    std::cout << "done" << std::endl;
}
