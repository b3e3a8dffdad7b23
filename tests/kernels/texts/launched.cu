template <int BM, int BN> __global__ void tiled(const float *A, float *C, int M, int N, int width)
{{ extern __shared__ float s[]; C[blockIdx.x + blockIdx.y] = s[threadIdx.x]; }}
{before}
void run(float *a, float *c, int rows, int cols) {{ {host} }}
