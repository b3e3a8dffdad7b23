// /// matbench
// name = "host-loop"
// summary = "The host's triple loop, as one work-item of the CPU"
// group = "baseline"
// requires = ["host"]
// [launch]
// where = ["M * N * K <= 2**24"]
// block = [1]
// grid = [1]
// ///

// One thread of one block computes all of C, as a program without a GPU would. Each element is a
// row of A times a column of B; nothing runs in parallel.

extern "C" __global__ void host_loop(const float *A, const float *B, float *C, int M, int N, int K)
{
    for (int row = 0; row < M; ++row) {
        for (int column = 0; column < N; ++column) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
            C[(size_t)row * N + column] = sum;
        }
    }
}
