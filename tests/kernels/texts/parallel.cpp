
void f(int n, int k, int m, float *c, const float *b, const float *a) {
    int i, j;
#pragma omp parallel for PRIVATE
    for (i = 0; i < m; ++i)
        for (j = 0; j < n; ++j) {
            float sum = 0;
            for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
            c[i * n + j] = sum;
        }
}
