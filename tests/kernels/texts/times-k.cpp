#include "k.h"
void g(const float *A, const float *B, float *C, int M, int N, int K) {
    for (int i = 0; i < M * N; ++i) {
        C[i] = 0;
        for (int j = 0; j < K; ++j) C[i] += k * A[i / N * K + j] * B[j * N + i % N];
    }
}
