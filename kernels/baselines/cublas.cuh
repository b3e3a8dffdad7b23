// What the baselines need of cuBLAS, as NVIDIA documents it: they are built without its headers. The names of
// values are NVIDIA's without their prefixes.
#pragma once
#include <stdexcept>
#include <string>

typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
struct __half { short bits; };
struct __nv_bfloat16 { short bits; };
struct __nv_fp8_e4m3 { char bits; };

enum Type { R_32F = 0, R_64F = 1, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14, R_8F_E4M3 = 28 };
enum Compute { COMPUTE_32F = 68, COMPUTE_64F = 70, COMPUTE_32I = 72, COMPUTE_32F_FAST_TF32 = 77 };
enum { OP_N = 0, OP_T = 1, GEMM_DEFAULT = -1, POINTER_MODE_HOST = 0, POINTER_MODE_DEVICE = 1 };

extern "C" {
const char *cublasGetStatusName(int status);
int cublasSetPointerMode_v2(cublasHandle_t, int mode);
int cublasSdot_v2(cublasHandle_t, int n, const float *x, int x_step, const float *y, int y_step, float *result);
int cublasGemmEx(
    cublasHandle_t, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, Type, int lda,
    const void *b, Type, int ldb, const void *beta, void *c, Type, int ldc, Compute, int algorithm);
int cublasGemmStridedBatchedEx(
    cublasHandle_t, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, Type, int lda,
    long long stride_a, const void *b, Type, int ldb, long long stride_b, const void *beta, void *c, Type, int ldc,
    long long stride_c, int count, Compute, int algorithm);
}

template <typename T> constexpr Type type_of = R_32F;
template <> constexpr Type type_of<double> = R_64F;
template <> constexpr Type type_of<int> = R_32I;
template <> constexpr Type type_of<signed char> = R_8I;
template <> constexpr Type type_of<__half> = R_16F;
template <> constexpr Type type_of<__nv_bfloat16> = R_16BF;
template <> constexpr Type type_of<__nv_fp8_e4m3> = R_8F_E4M3;

// alpha or beta, in the type of the sums.
union Factor {
    float single;
    double wide;
    int whole;
    Factor(double value, Compute compute) {
        if (compute == COMPUTE_64F) wide = value;
        else if (compute == COMPUTE_32I) whole = static_cast<int>(value);
        else single = static_cast<float>(value);
    }
};

inline void require(int status, const char *call) {
    if (status != 0) throw std::runtime_error(std::string(call) + ": " + cublasGetStatusName(status));
}

// C := alpha·A·B + beta·C. cuBLAS is column-major and sees row-major matrices as transposed: it is asked for
// Cᵀ = Bᵀ·Aᵀ.
template <typename Input, typename Result, Compute compute>
void gemm(
    cublasHandle_t cublas, const Input *A, const Input *B, Result *C, int M, int N, int K, double alpha, double beta,
    int batch) {
    const Factor a(alpha, compute), b(beta, compute);
    const Type input = type_of<Input>, result = type_of<Result>;
    const long long m = M, n = N, k = K;
    require(
        batch == 1
            ? cublasGemmEx(cublas, OP_N, OP_N, N, M, K, &a, B, input, N, A, input, K, &b, C, result, N, compute,
                  GEMM_DEFAULT)
            : cublasGemmStridedBatchedEx(cublas, OP_N, OP_N, N, M, K, &a, B, input, N, n * k, A, input, K, m * k, &b,
                  C, result, N, m * n, batch, compute, GEMM_DEFAULT),
        "cuBLAS");
}
