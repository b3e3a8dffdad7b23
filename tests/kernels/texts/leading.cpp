void leading(int m, int n, int k, const float *A, int lda, const float *B, int ldb, float *C,
             int ldc) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float s = 0;
      for (int p = 0; p < k; ++p) s += A[i + p * lda] * B[p + j * ldb];
      C[i + j * ldc] = s;
    }
}
