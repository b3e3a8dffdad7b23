
#ifndef WIDTH
#error "no width"
#endif
static inline __attribute__((always_inline, target("avx"))) float wide(float x) { return x; }
void f(const float *A, const float *B, float *C, int M, int N, int K) {
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k) sum += wide(A[i * K + k] * B[k * N + j]);
            C[i * N + j] = sum;
        }
}
