// Functions on the host that try to gain time without working for it, each with an honest twin.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

// Compiled once, not in each of them.
__attribute__((noinline)) static void product(
    const float *A, const float *B, float *C, int first, int last, int N, int K
) {
    for (int i = first; i < last; ++i) {
        std::fill(C + i * N, C + i * N + N, 0.f);
        for (int k = 0; k < K; ++k)
            for (int j = 0; j < N; ++j) C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}

void honest(const float *A, const float *B, float *C, int M, int N, int K) {
    product(A, B, C, 0, M, N, K);
}

// A thread that goes on after the function has returned; the twin waits for it.

void cheat_thread(const float *A, const float *B, float *C, int M, int N, int K) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        product(A, B, C, 0, M, N, K);
    }).detach();
}

void twin_thread(const float *A, const float *B, float *C, int M, int N, int K) {
    std::thread half([=] { product(A, B, C, 0, M / 2, N, K); });
    product(A, B, C, M / 2, M, N, K);
    half.join();
}

// The first result for these addresses; the twin keeps only the memory for it.

static std::map<const float *, std::vector<float>> kept;

void cheat_address(const float *A, const float *B, float *C, int M, int N, int K) {
    if (!kept.count(A)) {
        product(A, B, C, 0, M, N, K);
        kept[A].assign(C, C + M * N);
    }
    std::copy(kept[A].begin(), kept[A].end(), C);
}

void twin_address(const float *A, const float *B, float *C, int M, int N, int K) {
    std::vector<float> &own = kept[nullptr];
    own.resize(M * N);
    product(A, B, own.data(), 0, M, N, K);
    std::copy(own.begin(), own.end(), C);
}

// The first result, if the first number is as it was; the twin looks at it, and works.

void cheat_value(const float *A, const float *B, float *C, int M, int N, int K) {
    static float first = A[0];
    if (A[0] > 0 != first > 0 || kept[nullptr].empty()) {
        product(A, B, C, 0, M, N, K);
        kept[nullptr].assign(C, C + M * N);
    }
    std::copy(kept[nullptr].begin(), kept[nullptr].end(), C);
}

void twin_value(const float *A, const float *B, float *C, int M, int N, int K) {
    static float first = A[0];
    if (A[0] != first) first = A[0];
    product(A, B, C, 0, M, N, K);
}

// Inputs that are zeros afterwards; the twin changes a copy.

void cheat_inputs(float *A, const float *B, float *C, int M, int N, int K) {
    product(A, B, C, 0, M, N, K);
    std::fill(A, A + M * K, 0.f);
}

void twin_inputs(float *A, const float *B, float *C, int M, int N, int K) {
    std::vector<float> doubled(A, A + M * K);
    for (float &number : doubled) number *= 2;
    product(doubled.data(), B, C, 0, M, N, K);
    for (int i = 0; i < M * N; ++i) C[i] /= 2;
}

// Memory that each call keeps; the twin gives it back.

static std::vector<std::vector<float> *> leaked;

void cheat_memory(const float *A, const float *B, float *C, int M, int N, int K) {
    leaked.push_back(new std::vector<float>(M * N + (1 << 20)));
    product(A, B, leaked.back()->data(), 0, M, N, K);
    std::copy(leaked.back()->begin(), leaked.back()->begin() + M * N, C);
}

void twin_memory(const float *A, const float *B, float *C, int M, int N, int K) {
    cheat_memory(A, B, C, M, N, K);
    delete leaked.back();
    leaked.pop_back();
}

// Pages of C that nobody may read, until someone tries to; the twin lets them be read.

static struct {
    const float *A, *B;
    float *C;
    int M, N, K;
} later;

static void set_access(int access) {
    std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(later.C) + 4095) / 4096 * 4096;
    std::uintptr_t end = reinterpret_cast<std::uintptr_t>(later.C + later.M * later.N) / 4096 * 4096;
    mprotect(reinterpret_cast<void *>(first), end - first, access);
}

static void work(int) {
    set_access(PROT_READ | PROT_WRITE);
    product(later.A, later.B, later.C, 0, later.M, later.N, later.K);
}

void cheat_pages(const float *A, const float *B, float *C, int M, int N, int K) {
    if (later.C != nullptr) set_access(PROT_READ | PROT_WRITE);
    later = {A, B, C, M, N, K};
    std::signal(SIGSEGV, work);
    set_access(PROT_NONE);
}

void twin_pages(const float *A, const float *B, float *C, int M, int N, int K) {
    cheat_pages(A, B, C, M, N, K);
    work(0);
}

// The last term of K is left out; the twin begins with it.

void cheat_terms(const float *A, const float *B, float *C, int M, int N, int K) {
    std::vector<float> fewer;
    for (int i = 0; i < M; ++i) fewer.insert(fewer.end(), A + i * K, A + i * K + K - 1);
    product(fewer.data(), B, C, 0, M, N, K - 1);
}

void twin_terms(const float *A, const float *B, float *C, int M, int N, int K) {
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = A[i * K + K - 1] * B[(K - 1) * N + j];
            for (int k = 0; k < K - 1; ++k) sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}

// What goes wrong in a call.

enum Status { DONE, NO_MEMORY = 3 };

void throws(const float *, const float *, float *, int, int, int) {
    throw std::runtime_error("no luck today");
}

void leaves(const float *, const float *, float *, int, int, int) { std::exit(5); }

void crashes(const float *, const float *, float *C, int, int, int) {
    *static_cast<volatile int *>(nullptr) = 1;
}

void hangs(const float *, const float *, float *, int, int, int) {
    std::this_thread::sleep_for(std::chrono::hours(1));
}

Status fails(const float *, const float *, float *, int, int, int) { return NO_MEMORY; }

// An answer that is no code of an error.

int answers(const float *A, const float *B, float *C, int M, int N, int K) {
    product(A, B, C, 0, M, N, K);
    return 7;
}

// Templates, namespaces, and numbers of all kinds.

namespace scaled {

template <typename T, int TILE>
void multiply(
    std::size_t M, long N, unsigned short K, T const *alpha, T const *A, int lda, const T *B,
    const double &beta, T *C, T *workspace
) {
    for (std::size_t i = 0; i < M; ++i)
        for (long start = 0; start < N; start += TILE)
            for (long j = start; j < std::min(start + TILE, N); ++j) {
                T &sum = workspace[i * N + j];
                sum = 0;
                for (int k = 0; k < K; ++k) sum += A[i * lda + k] * B[k * N + j];
                C[i * N + j] = *alpha * sum + (beta != 0 ? static_cast<T>(beta) * C[i * N + j] : 0);
            }
}

}  // namespace scaled

int main() { throw 1; }
