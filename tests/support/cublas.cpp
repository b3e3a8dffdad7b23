// cuBLAS and cuBLASLt on the host: they check what arrives, compute slowly, and keep what they were asked for.
#include <cstdint>
#include <cstring>
#include <vector>

struct Description { int compute, sums, turned = 0; int8_t fast = 0; int modes[2] = {}; const float *scales[2] = {}; };
struct Layout { int type; uint64_t rows, columns; int64_t leading; int batch = 1; int64_t step = 0; };
struct Preference { uint64_t bytes = 0; uint32_t schemes = 7; };
struct Suggestion { uint64_t algorithm[8]; size_t bytes; int status; float waves; int reserved[4]; };

extern "C" {
// Set by tests: how many algorithms there are, which of them cannot be used or fails when it is,
// and what every product returns.
int algorithms = 1, unusable = -1, failing = -1, fails = 0;
// Read by tests.
int launched[1000], launches = 0, wanted = 0, schemes = 0, fast = 0, mode_a = 0, mode_b = 0, alive = 0;
}
static char handle;
static void *stream, *workspace;
static int math = 0, pointers = 0;

static double half_at(uint16_t bits, int exponent_bits, int fraction_bits, int bias) {
    const int sign = bits >> (exponent_bits + fraction_bits), exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const double fraction = double(bits & ((1 << fraction_bits) - 1)) / (1 << fraction_bits);
    const double size = exponent ? (1 + fraction) * __builtin_ldexp(1, exponent - bias) : fraction * __builtin_ldexp(1, 1 - bias);
    return sign ? -size : size;
}
static double get(int type, const void *at, int64_t i) {
    switch (type) {
        case 0: return static_cast<const float *>(at)[i];
        case 1: return static_cast<const double *>(at)[i];
        case 2: return half_at(static_cast<const uint16_t *>(at)[i], 5, 10, 15);
        case 3: return static_cast<const int8_t *>(at)[i];
        case 10: return static_cast<const int *>(at)[i];
        case 14: return half_at(static_cast<const uint16_t *>(at)[i], 8, 7, 127);
        default: return half_at(static_cast<const uint8_t *>(at)[i], 4, 3, 7);
    }
}
static void put(int type, void *at, int64_t i, double value) {
    const float single = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    switch (type) {
        case 0: static_cast<float *>(at)[i] = single; break;
        case 1: static_cast<double *>(at)[i] = value; break;
        case 2: static_cast<_Float16 *>(at)[i] = static_cast<_Float16>(value); break;
        case 10: static_cast<int *>(at)[i] = static_cast<int>(value); break;
        case 14: static_cast<uint16_t *>(at)[i] = bits >> 16; break;
    }
}
static const char *step(const void *at, int type, int64_t elements) {
    const int sizes[] = {4, 8, 2, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2};
    return static_cast<const char *>(at) + elements * (type == 28 ? 1 : sizes[type]);
}
static void multiply(
    const Description &is, const void *alpha, const void *a, const Layout &of_a, const void *b, const Layout &of_b,
    const void *beta, const void *c, void *d, const Layout &of_c) {
    const double x = get(is.sums, alpha, 0), y = get(is.sums, beta, 0);
    const int64_t depth = of_b.rows;
    for (int one = 0; one < of_c.batch; ++one) {
        const void *at_a = step(a, of_a.type, one * of_a.step), *at_b = step(b, of_b.type, one * of_b.step);
        const void *at_c = step(c, of_c.type, one * of_c.step);
        void *at_d = const_cast<char *>(step(d, of_c.type, one * of_c.step));
        for (int64_t i = 0; i < int64_t(of_c.rows); ++i)
            for (int64_t j = 0; j < int64_t(of_c.columns); ++j) {
                double sum = 0;
                for (int64_t k = 0; k < depth; ++k)
                    sum += get(of_a.type, at_a, is.turned ? i * of_a.leading + k : k * of_a.leading + i) *
                           get(of_b.type, at_b, j * of_b.leading + k);
                if (is.scales[0]) sum *= is.scales[0][is.modes[0] ? i : 0];
                if (is.scales[1]) sum *= is.scales[1][is.modes[1] ? j : 0];
                const int64_t place = j * of_c.leading + i;
                put(of_c.type, at_d, place, x * sum + (y ? y * get(of_c.type, at_c, place) : 0));
            }
    }
}
static bool is_ready(void *given) { return given == &handle && stream == (void *)22 && math == 16 && workspace; }
static int sums_of(int compute) { return compute == 70 ? 1 : compute == 72 ? 10 : 0; }

extern "C" {
int cublasGetProperty(int part, int *value) { return *value = 13 - part, 0; }
const char *cublasGetStatusName(int status) { return status == 15 ? "NOT_SUPPORTED" : "EXECUTION_FAILED"; }
int cublasCreate_v2(void **made) { return ++alive, *made = &handle, 0; }
int cublasDestroy_v2(void *) { return --alive, 0; }
int cublasSetStream_v2(void *, void *given) { return stream = given, 0; }
int cublasSetWorkspace_v2(void *, void *given, size_t bytes) { return workspace = given, bytes != 32 << 20; }
int cublasSetMathMode(void *, int mode) { return math = mode, 0; }
int cublasGetVector(int n, int bytes, const void *from, int, void *to, int) { return std::memcpy(to, from, n * bytes), 0; }
int cublasSetPointerMode_v2(void *, int mode) { return pointers = mode, 0; }
int cublasSdot_v2(void *given, int n, const float *x, int, const float *y, int, float *result) {
    if (!is_ready(given) || pointers != 1) return 13;
    *result = 0;
    for (int i = 0; i < n; ++i) *result += x[i] * y[i];
    return 0;
}
int cublasGemmStridedBatchedEx(
    void *given, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
    int64_t step_a, const void *b, int type_b, int ldb, int64_t step_b, const void *beta, void *c, int type_c, int ldc,
    int64_t step_c, int batch, int compute, int algorithm) {
    if (fails) return fails;
    if (!is_ready(given) || op_a || op_b || algorithm != -1 || pointers) return 13;
    launched[launches++] = compute;
    multiply({compute, sums_of(compute)}, alpha, a, {type_a, uint64_t(m), uint64_t(k), lda, batch, step_a}, b,
        {type_b, uint64_t(k), uint64_t(n), ldb, batch, step_b}, beta, c, c,
        {type_c, uint64_t(m), uint64_t(n), ldc, batch, step_c});
    return 0;
}
int cublasGemmEx(
    void *given, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
    const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(given, op_a, op_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c,
        type_c, ldc, 0, 1, compute, algorithm);
}
int cublasLtMatmulDescCreate(Description **made, int compute, int sums) {
    return *made = new Description{compute, sums}, sums != sums_of(compute);
}
int cublasLtMatmulDescSetAttribute(Description *of, int which, const void *value, size_t bytes) {
    void *places[] = {&of->turned, &of->scales[0], &of->scales[1], &of->fast, &of->modes[0], &of->modes[1]};
    const int known[] = {3, 17, 18, 25, 31, 32};
    const size_t sizes[] = {4, 8, 8, 1, 4, 4};
    for (int i = 0; i < 6; ++i)
        if (known[i] == which && sizes[i] == bytes) return std::memcpy(places[i], value, bytes), 0;
    return 7;
}
int cublasLtMatrixLayoutCreate(Layout **made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    return *made = new Layout{type, rows, columns, leading}, 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout *of, int which, const void *value, size_t bytes) {
    if (which == 5 && bytes == 4) return std::memcpy(&of->batch, value, bytes), 0;
    return which == 6 && bytes == 8 ? std::memcpy(&of->step, value, bytes), 0 : 7;
}
int cublasLtMatmulPreferenceCreate(Preference **made) { return *made = new Preference, 0; }
int cublasLtMatmulPreferenceSetAttribute(Preference *of, int which, const void *value, size_t bytes) {
    if (which == 1 && bytes == 8) return std::memcpy(&of->bytes, value, bytes), 0;
    return which == 3 && bytes == 4 ? std::memcpy(&of->schemes, value, bytes), 0 : 7;
}
int cublasLtMatmulAlgoGetHeuristic(
    void *given, Description *is, Layout *, Layout *, Layout *of_c, Layout *of_d, Preference *by, int most,
    Suggestion *found, int *count) {
    if (!is_ready(given) || of_c != of_d || by->bytes != 32 << 20) return 7;
    wanted = most, schemes = by->schemes, fast = is->fast, mode_a = is->modes[0], mode_b = is->modes[1];
    *count = algorithms < most ? algorithms : most;
    for (int i = 0; i < *count; ++i) found[i].algorithm[0] = i, found[i].status = i == unusable ? 15 : 0;
    return 0;
}
int cublasLtMatmul(
    void *given, Description *is, const void *alpha, const void *a, Layout *of_a, const void *b, Layout *of_b,
    const void *beta, const void *c, Layout *of_c, void *d, Layout *of_d, const uint64_t *algorithm, void *memory,
    size_t bytes, void *on) {
    launched[launches++] = algorithm[0];
    if (fails || failing == int(algorithm[0])) return fails ? fails : 15;
    if (!is_ready(given) || of_c != of_d || memory != workspace || bytes != 32 << 20 || on != stream) return 13;
    multiply(*is, alpha, a, *of_a, b, *of_b, beta, c, d, *of_c);
    return 0;
}
}
