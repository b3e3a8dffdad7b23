#ifndef TILE
#define TILE 64
#endif
extern "C" void tiled(const float *A, const float *B, float *C, int M, int N, int K) {
  for (int i0 = 0; i0 + TILE <= M; i0 += TILE)
    for (int j0 = 0; j0 + TILE <= N; j0 += TILE)
      for (int i = i0; i < i0 + TILE; i++)
        for (int j = j0; j < j0 + TILE; j++) {
          float sum = 0;
          for (int k = 0; k < K; k++) sum += A[i * K + k] * B[k * N + j];
          C[i * N + j] = sum;
        }
}
