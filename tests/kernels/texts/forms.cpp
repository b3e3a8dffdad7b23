#include <stdexcept>
#define LOOPS \
    for (int i = 0; i < M; ++i) \
        for (int j = 0; j < N; ++j) { \
            C[i * N + j] = 0; \
            for (int k = 0; k < K; ++k) C[i * N + j] += A[i * K + k] * B[k * N + j]; \
        }
template <typename T = float, int TILE = 16>
void defaults(const T *A, const T *B, T *C, int M, int N, int K) { LOOPS }
void quiet(const float *A, const float *B, float *C, int M, int N, int K) noexcept { LOOPS }
void silent(const float *, const float *, float *, int, int, int) { throw std::runtime_error(""); }

void untyped(const void *A, const float *B, float *C, int M, int N, int K) {}
