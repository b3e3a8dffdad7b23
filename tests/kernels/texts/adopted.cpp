
void gemm_nt(
    float *out, const float *x, const float *weight, int rows, int cols, int inner, float *alpha
) {
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < cols; ++j) {
            float sum = 0;
            for (int k = 0; k < inner; ++k) sum += x[i * inner + k] * weight[j * inner + k];
            out[i * cols + j] = *alpha * sum;
        }
}

template <typename T>
void none(const T *A, const T *B, T *C, int N) { C[0] = A[0]; }

void other(int N, const float *x) {}
