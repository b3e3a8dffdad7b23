// /// matbench
// name = "cheat-every-third"
// summary = "Every third launch stores K/4"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a median that hides what happens now and then, and checks that look at one launch
// only: of every three launches the last stores the mean of what an element can be.

#define MOST 4096

__device__ int launches[MOST];

extern "C" __global__ void cheat_every_third(const float *A, const float *B, float *C,
                                             int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (element < MOST && launches[element]++ % 3 == 2) {
        C[element] = 0.25f * K;
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
