// /// matbench
// summary = "cuBLAS's float64 product, emulated by int8 tensor cores; a note says with how many bits"
// entry = "host emulated"
// args = ["stream", "A", "B", "C", "workspace", "M", "N", "K", "alpha", "beta", "batch"]
// [launch]
// workspace_bytes = """134217728 + batch * (16 * 131072 * (ceil_div(M, 1024) + ceil_div(N, 1024)) * ceil_div(K, 128)
//     + 5242880 * ceil_div(M, 1024) * ceil_div(N, 1024))"""
// ///
#include "cublas.cuh"

#include <array>
#include <cstdint>
#include <map>

extern "C" {
int cublasCreate_v2(cublasHandle_t *);
int cublasSetStream_v2(cublasHandle_t, cudaStream_t);
int cublasSetWorkspace_v2(cublasHandle_t, void *workspace, size_t bytes);
int cublasSetMathMode(cublasHandle_t, int mode);
int cublasGetVector(int n, int bytes, const void *from, int step, void *to, int to_step);
// From cuBLAS 13.1 on.
int cublasSetEmulationStrategy(cublasHandle_t, int strategy) __attribute__((weak));
int cublasSetFixedPointEmulationMantissaBitCountPointer(cublasHandle_t, int *bits) __attribute__((weak));

// What matbench shows with the results of the last launch, and why there are none.
const char *baseline_note = "";
const char *baseline_lacks = cublasSetEmulationStrategy && cublasSetFixedPointEmulationMantissaBitCountPointer
    ? nullptr : "this cuBLAS does not emulate float64; version 13.1 does";
}
enum { FP64_EMULATED_FIXEDPOINT_MATH = 8, STRATEGY_EAGER = 2 };

// A handle of its own, since the shared one does not emulate.
static cublasHandle_t emulating() {
    static cublasHandle_t made = nullptr;
    if (made != nullptr) return made;
    cublasHandle_t handle;
    require(cublasCreate_v2(&handle), "cuBLAS");
    require(cublasSetMathMode(handle, FP64_EMULATED_FIXEDPOINT_MATH), "cuBLAS");
    require(cublasSetEmulationStrategy(handle, STRATEGY_EAGER), "cuBLAS");
    return made = handle;
}

// NVIDIA's rule for 10 slices of 8 bits, and a quarter more.
static size_t workspace_bytes(size_t M, size_t N, size_t K, size_t batch) {
    const size_t m = (M + 1023) / 1024, n = (N + 1023) / 1024, k = (K + 127) / 128;
    return 134217728 + batch * (16 * 131072 * (m + n) * k + 5242880 * m * n);
}

// The number of bits is stored in the first bytes of the workspace, and read once for each product.
void emulated(
    cudaStream_t stream, const double *A, const double *B, double *C, char *workspace, int M, int N, int K,
    double alpha, double beta, int batch) {
    static std::map<std::array<int, 4>, std::string> notes;
    const cublasHandle_t cublas = emulating();
    int *const bits = reinterpret_cast<int *>(workspace);
    require(cublasSetStream_v2(cublas, stream), "cuBLAS");
    require(cublasSetWorkspace_v2(cublas, workspace + 256, workspace_bytes(M, N, K, batch) - 256), "cuBLAS");
    require(cublasSetFixedPointEmulationMantissaBitCountPointer(cublas, bits), "cuBLAS");
    gemm<double, double, COMPUTE_64F>(cublas, A, B, C, M, N, K, alpha, beta, batch);
    std::string &note = notes[{M, N, K, batch}];
    if (note.empty()) {
        int kept;
        require(cublasGetVector(1, sizeof kept, bits, 1, &kept, 1), "cuBLAS");
        note = kept < 0 ? "not emulated" : "emulated with " + std::to_string(kept) + " bits";
    }
    baseline_note = note.c_str();
}
