#define TILE 8

__global__ void bmm(const float *x, const float *y, float *z, int batch_size, int n)
{
    int batch = blockIdx.z;
    int i = blockIdx.y * TILE + threadIdx.y;
    int j = blockIdx.x * TILE + threadIdx.x;
    if (batch >= batch_size || i >= n || j >= n)
        return;
    const float *xb = x + batch * n * n;
    const float *yb = y + batch * n * n;
    float s = 0.f;
    for (int l = 0; l < n; ++l)
        s += xb[i * n + l] * yb[l * n + j];
    z[batch * n * n + i * n + j] = s;
}
