// Products by cuBLASLt: by the algorithm that it suggests first, or by the fastest of the first that it suggests.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "cublas.cuh"

struct Suggestion {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};
enum { TRANSA = 3, A_SCALE_POINTER = 17, B_SCALE_POINTER = 18, FAST_ACCUM = 25, A_SCALE_MODE = 31, B_SCALE_MODE = 32 };
enum { BATCH_COUNT = 5, STRIDED_BATCH_OFFSET = 6, MAX_WORKSPACE_BYTES = 1, REDUCTION_SCHEME_MASK = 3 };
enum { SCHEME_COMPUTE_TYPE = 2, SCHEME_MASK = 7, SCALE_OUTER_VEC_32F = 3 };

extern "C" {
int cublasLtMatmulDescCreate(void **description, Compute, Type sums);
int cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value, size_t bytes);
int cublasLtMatrixLayoutCreate(void **layout, Type, uint64_t rows, uint64_t columns, int64_t leading);
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes);
int cublasLtMatmulPreferenceCreate(void **preference);
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes);
int cublasLtMatmulAlgoGetHeuristic(
    cublasHandle_t, void *description, void *a, void *b, void *c, void *d, void *preference, int most, Suggestion *,
    int *count);
int cublasLtMatmul(
    cublasHandle_t, void *description, const void *alpha, const void *a, void *of_a, const void *b, void *of_b,
    const void *beta, const void *c, void *of_c, void *d, void *of_d, const uint64_t *algorithm, void *workspace,
    size_t workspace_bytes, cudaStream_t);

// What matbench sets: memory, and what finds the fastest of `count` launches, each of which writes `bytes` and
// returns a status.
using Launch = int (*)(const void *context, size_t number, void *D);
void *baseline_workspace = nullptr;
int (*baseline_fastest)(size_t count, size_t bytes, Launch, const void *context) = nullptr;
// What it shows with the results of the last launch.
const char *baseline_note = "";
}
constexpr uint64_t WORKSPACE_BYTES = 32 << 20;

// What cuBLASLt makes for a product of these sizes and factors, as long as the process lives.
struct Plan {
    void *description = nullptr, *B, *A, *C;
    Suggestion by;
    std::string note;
};

template <typename Value>
void describe(void *description, int attribute, Value value) {
    require(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "cuBLASLt");
}

// Column-major matrices, one after the other.
inline void *layout(Type type, uint64_t rows, uint64_t columns, int batch) {
    void *made;
    const int64_t step = rows * columns;
    require(cublasLtMatrixLayoutCreate(&made, type, rows, columns, rows), "cuBLASLt");
    if (batch == 1) return made;
    require(cublasLtMatrixLayoutSetAttribute(made, BATCH_COUNT, &batch, sizeof batch), "cuBLASLt");
    require(cublasLtMatrixLayoutSetAttribute(made, STRIDED_BATCH_OFFSET, &step, sizeof step), "cuBLASLt");
    return made;
}

// The algorithms that are suggested first, of those that add partial sums over K in the type of the sums.
inline std::vector<Suggestion> suggestions(cublasHandle_t cublas, const Plan &plan, uint32_t schemes, int most) {
    void *preference;
    std::vector<Suggestion> found(most);
    int count;
    require(cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt");
    const auto set = cublasLtMatmulPreferenceSetAttribute;
    require(set(preference, MAX_WORKSPACE_BYTES, &WORKSPACE_BYTES, sizeof WORKSPACE_BYTES), "cuBLASLt");
    require(set(preference, REDUCTION_SCHEME_MASK, &schemes, sizeof schemes), "cuBLASLt");
    require(cublasLtMatmulAlgoGetHeuristic(
        cublas, plan.description, plan.B, plan.A, plan.C, plan.C, preference, most, found.data(), &count), "cuBLASLt");
    found.resize(count);
    const auto fails = [](const Suggestion &one) { return one.status != 0; };
    found.erase(std::remove_if(found.begin(), found.end(), fails), found.end());
    if (found.empty()) throw std::runtime_error("cuBLASLt has no algorithm for this product");
    return found;
}

template <typename Input, typename Result, Compute compute, int most, bool by_rows>
void multiply(
    cublasHandle_t cublas, cudaStream_t stream, const Input *A, const Input *B, Result *C, int M, int N, int K,
    double alpha, double beta, int batch, const float *scale_a, const float *scale_b) {
    static std::map<std::array<double, 6>, Plan> plans;
    Plan &plan = plans[{double(M), double(N), double(K), alpha, beta, double(batch)}];
    const bool is_new = plan.description == nullptr, is_turned = sizeof(Input) == 1;
    const Type sums = compute == COMPUTE_64F ? R_64F : compute == COMPUTE_32I ? R_32I : R_32F;
    if (is_new) {
        require(cublasLtMatmulDescCreate(&plan.description, compute, sums), "cuBLASLt");
        if (is_turned) describe(plan.description, TRANSA, int32_t(OP_T));
        if (type_of<Input> == R_8F_E4M3) describe(plan.description, FAST_ACCUM, int8_t(1));
        for (int mode : {A_SCALE_MODE, B_SCALE_MODE})
            if (by_rows) describe(plan.description, mode, int32_t(SCALE_OUTER_VEC_32F));
        plan.B = is_turned ? layout(type_of<Input>, K, N, batch) : layout(type_of<Input>, N, K, batch);
        plan.A = layout(type_of<Input>, K, M, batch);
        plan.C = layout(type_of<Result>, N, M, batch);
    }
    if (scale_a != nullptr) {  // of each launch its own
        describe(plan.description, A_SCALE_POINTER, scale_b);
        describe(plan.description, B_SCALE_POINTER, scale_a);
    }
    const Factor a(alpha, compute), b(beta, compute);
    const auto enqueue = [&](const Suggestion &by, void *D) {
        return cublasLtMatmul(
            cublas, plan.description, &a, B, plan.B, A, plan.A, &b, C, plan.C, D, plan.C, by.algorithm,
            baseline_workspace, WORKSPACE_BYTES, stream);
    };
    if (is_new) {
        const auto found = suggestions(cublas, plan, type_of<Result> == sums ? SCHEME_MASK : SCHEME_COMPUTE_TYPE, most);
        const std::function<int(size_t, void *)> one = [&](size_t number, void *D) {
            return enqueue(found[number], D);
        };
        const Launch launch = [](const void *context, size_t number, void *D) {
            return (*static_cast<decltype(&one)>(context))(number, D);
        };
        const size_t bytes = sizeof(Result) * M * N * batch;
        const int number = most > 1 ? baseline_fastest(found.size(), bytes, launch, &one) : 0;
        if (number < 0) throw std::runtime_error("cuBLASLt's algorithms could not be timed");
        const std::string of = " of the " + std::to_string(found.size()) + " that cuBLASLt suggests";
        plan.by = found[number];
        if (most > 1) plan.note = "algorithm " + std::to_string(number + 1) + of;
    }
    baseline_note = plan.note.c_str();
    require(enqueue(plan.by, C), "cuBLASLt");
}

// C := alpha·A·B + beta·C.
template <typename Input, typename Result, Compute compute, int most>
void product(
    cublasHandle_t cublas, cudaStream_t stream, const Input *A, const Input *B, Result *C, int M, int N, int K,
    double alpha, double beta, int batch) {
    multiply<Input, Result, compute, most, false>(cublas, stream, A, B, C, M, N, K, alpha, beta, batch, nullptr, nullptr);
}

// C := A·Bᵀ for operands of 8 bits, with factors of A and of B or without.
template <typename Input, typename Result, Compute compute, int most>
void turned(cublasHandle_t cublas, cudaStream_t stream, const Input *A, const Input *B, Result *C, int M, int N, int K) {
    multiply<Input, Result, compute, most, false>(cublas, stream, A, B, C, M, N, K, 1, 0, 1, nullptr, nullptr);
}

template <typename Input, typename Result, Compute compute, int most, bool by_rows>
void scaled(
    cublasHandle_t cublas, cudaStream_t stream, const Input *A, const Input *B, Result *C, int M, int N, int K,
    const float *scale_a, const float *scale_b) {
    multiply<Input, Result, compute, most, by_rows>(cublas, stream, A, B, C, M, N, K, 1, 0, 1, scale_a, scale_b);
}
