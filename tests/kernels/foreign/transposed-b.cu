// out = x * weight^T, as a linear layer has it: x is (rows, in), weight is (cols, in).
__global__ void linear_forward(float *out, const float *x, const float *weight, int rows,
                               int in_features, int out_features)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    int o = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && o < out_features) {
        float val = 0.0f;
        for (int i = 0; i < in_features; i++)
            val += x[r * in_features + i] * weight[o * in_features + i];
        out[r * out_features + o] = val;
    }
}
