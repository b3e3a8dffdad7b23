// Functions on the host that launch kernels: honest ones in several styles, and functions that try
// to gain time without working for it, each with an honest twin. The last END - 1 terms of K are left
// out, so END = 2 is wrong.
#include <cuda.h>
#include <chrono>
#include <map>
#include <thread>

template <typename T>
__global__ void multiply(
    const T *A, const T *B, T *C, int M, int N, int K, int first, int last, T alpha
) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= M || j >= N) return;
    T sum = 0;
    for (int k = first; k < last; ++k) sum += A[i * K + k] * B[k * N + j];
    C[i * N + j] = alpha * sum;
}

static void start(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    dim3 block(32, 8), grid((N + 31) / 32, (M + 7) / 8);
    multiply<float><<<grid, block, 0, stream>>>(A, B, C, M, N, K, 0, K + 1 - END, 1.f);
}

// On the default stream.
void plain(const float *A, const float *B, float *C, int M, int N, int K) {
    start(A, B, C, M, N, K, 0);
}

// Two launches: each computes a part of K into the workspace; a third adds them up.

__global__ void add(const float *parts, float *C, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) C[i] = parts[i] + parts[count + i];
}

void split(
    const float *A, const float *B, float *C, int M, int N, int K, void *workspace,
    cudaStream_t stream
) {
    float *parts = static_cast<float *>(workspace);
    dim3 block(32, 8), grid((N + 31) / 32, (M + 7) / 8);
    multiply<float><<<grid, block, 0, stream>>>(A, B, parts, M, N, K, 0, K / 2, 1.f);
    multiply<float><<<grid, block, 0, stream>>>(
        A, B, parts + M * N, M, N, K, K / 2, K + 1 - END, 1.f
    );
    add<<<(M * N + 255) / 256, 256, 0, stream>>>(parts, C, M * N);
}

// A template that reads alpha on the host.
namespace launchers {

template <typename T, int ROWS>
cudaError_t scaled(
    int M, int N, int K, T const *alpha, T const *A, T const *B, T *C, cudaStream_t stream
) {
    dim3 block(32, ROWS), grid((N + 31) / 32, (M + ROWS - 1) / ROWS);
    multiply<T><<<grid, block, 0, stream>>>(A, B, C, M, N, K, 0, K + 1 - END, *alpha);
    return cudaGetLastError();
}

}  // namespace launchers

// Tensor maps: the copy engine fetches tiles of A and B, and fills what is outside with zeros.

const int TILE = 32;

__global__ void mapped(
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, float *C, int M,
    int N, int K
) {
    __shared__ alignas(128) float a[TILE][TILE], b[TILE][TILE];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned ready = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    unsigned at_a = static_cast<unsigned>(__cvta_generic_to_shared(a));
    unsigned at_b = static_cast<unsigned>(__cvta_generic_to_shared(b));
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    bool is_first = x == 0 && y == 0;
    if (is_first) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ready));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0, phase = 0; k < K; k += TILE, phase ^= 1) {
        if (is_first) {
            asm volatile(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ready),
                "r"(static_cast<unsigned>(sizeof a + sizeof b))
                : "memory");
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1, {%2, %3}], [%4];" ::"r"(at_a),
                "l"(&A), "r"(k), "r"(row), "r"(ready)
                : "memory");
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1, {%2, %3}], [%4];" ::"r"(at_b),
                "l"(&B), "r"(column), "r"(k), "r"(ready)
                : "memory");
        }
        unsigned is_done = 0;
        while (!is_done)
            asm volatile(
                "{ .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                " selp.u32 %0, 1, 0, p; }"
                : "=r"(is_done)
                : "r"(ready), "r"(phase)
                : "memory");
        for (int i = 0; i < TILE; ++i)
            if (k + i < K + 1 - END) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row + y < M && column + x < N) C[(row + y) * N + column + x] = sum;
}

static CUtensorMap map_of(const float *matrix, int rows, int columns) {
    static void *encode = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (encode == nullptr)
        cudaGetDriverEntryPointByVersion(
            "cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &result
        );
    CUtensorMap map;
    cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
    cuuint64_t pitch[] = {columns * sizeof(float)};
    cuuint32_t box[] = {TILE, TILE}, steps[] = {1, 1};
    reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float *>(matrix), sizes, pitch, box,
        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
    );
    return map;
}

void with_maps(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    mapped<<<grid, block, 0, stream>>>(map_of(A, M, K), map_of(B, K, N), C, M, N, K);
}

// Mistakes that the runtime notices.

void too_large(const float *A, const float *B, float *C, int M, int N, int K) {
    multiply<float><<<1, dim3(2048, 2048)>>>(A, B, C, M, N, K, 0, K, 1.f);
}

void outside(const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream) {
    start(A, B, nullptr, M, N, K, stream);
}

// A stream that starts before the inputs are ready; one whose end nobody waits for.

static cudaStream_t side() {
    static cudaStream_t stream = nullptr;
    if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
}

static void wait(cudaStream_t waiting, cudaStream_t first) {
    static cudaEvent_t event = nullptr;
    if (event == nullptr) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(waiting, event, 0);
}

void cheat_early(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    start(A, B, C, M, N, K, side());
    wait(stream, side());
}

void cheat_late(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    wait(side(), stream);
    start(A, B, C, M, N, K, side());
}

void twin_early(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    wait(side(), stream);
    start(A, B, C, M, N, K, side());
    wait(stream, side());
}

void twin_late(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    start(A, B, C, M, N, K, stream);
    cudaStreamSynchronize(stream);
}

// A thread that launches after the function has returned; the twin waits for it.

void cheat_thread(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        start(A, B, C, M, N, K, stream);
    }).detach();
}

void twin_thread(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    std::thread([=] { start(A, B, C, M, N, K, stream); }).join();
}

// Memory of our own.

static float *kept(const void *key, size_t bytes, bool &is_new) {
    static std::map<const void *, float *> buffers;
    is_new = !buffers.count(key);
    if (is_new) cudaMalloc(&buffers[key], bytes);
    return buffers[key];
}

// A graph that multiplies a copy of the first call's A; the twin copies A in each call.

static void launch(
    const float *copy, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    static std::map<const void *, cudaGraphExec_t> graphs;
    if (!graphs.count(C)) {
        cudaGraph_t graph;
        cudaStreamBeginCapture(side(), cudaStreamCaptureModeThreadLocal);
        start(copy, B, C, M, N, K, side());
        cudaStreamEndCapture(side(), &graph);
        cudaGraphInstantiate(&graphs[C], graph, 0);
        cudaGraphDestroy(graph);
    }
    cudaGraphLaunch(graphs[C], stream);
}

void cheat_graph(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    bool is_new;
    float *copy = kept(nullptr, sizeof(float) * M * K, is_new);
    if (is_new) cudaMemcpy(copy, A, sizeof(float) * M * K, cudaMemcpyDeviceToDevice);
    launch(copy, B, C, M, N, K, stream);
}

void twin_graph(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    bool is_new;
    float *copy = kept(nullptr, sizeof(float) * M * K, is_new);
    cudaMemcpyAsync(copy, A, sizeof(float) * M * K, cudaMemcpyDeviceToDevice, stream);
    launch(copy, B, C, M, N, K, stream);
}

// The first result for these addresses; the twin keeps only the memory for it.

void cheat_address(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    bool is_new;
    float *own = kept(A, sizeof(float) * M * N, is_new);
    if (is_new) start(A, B, own, M, N, K, stream);
    cudaMemcpyAsync(C, own, sizeof(float) * M * N, cudaMemcpyDeviceToDevice, stream);
}

void twin_address(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    bool is_new;
    float *own = kept(nullptr, sizeof(float) * M * N, is_new);
    start(A, B, own, M, N, K, stream);
    cudaMemcpyAsync(C, own, sizeof(float) * M * N, cudaMemcpyDeviceToDevice, stream);
}

// Inputs that are zeros afterwards; the twin works with a copy, which it clears.

void cheat_inputs(float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream) {
    start(A, B, C, M, N, K, stream);
    cudaMemsetAsync(A, 0, sizeof(float) * M * K, stream);
}

void twin_inputs(float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream) {
    bool is_new;
    float *own = kept(nullptr, sizeof(float) * M * K, is_new);
    cudaMemcpyAsync(own, A, sizeof(float) * M * K, cudaMemcpyDeviceToDevice, stream);
    cheat_inputs(own, B, C, M, N, K, stream);
}

// Memory that each call keeps; the twin gives it back.

void cheat_memory(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    void *leaked;
    cudaMalloc(&leaked, sizeof(float) * M * N);
    start(A, B, C, M, N, K, stream);
}

void twin_memory(
    const float *A, const float *B, float *C, int M, int N, int K, cudaStream_t stream
) {
    void *used;
    cudaMallocAsync(&used, sizeof(float) * M * N, stream);
    start(A, B, C, M, N, K, stream);
    cudaFreeAsync(used, stream);
}

int main() { return 0; }
