// /// matbench
// name = "bad-same-inputs-again"
// summary = "Leaves C alone when the inputs look like the last ones"
// deterministic = false
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// The mistake, in naive-2d: a block whose inputs start as those of its last launch did takes C to
// be computed already, and writes nothing. The file calls itself not deterministic, so no launch
// is compared bit for bit with another.

#ifndef TILE
#define TILE 16
#endif

__device__ float last_a[4096], last_b[4096];
__device__ int launched[4096];

extern "C" __global__ void bad_same_inputs_again(const float *A, const float *B, float *C,
                                                 int M, int N, int K)
{
    // Remember the inputs by their first elements.
    const size_t block = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    const size_t slot = block < 4096 ? block : 4095;
    const int known = block < 4096 && launched[slot] && last_a[slot] == A[0]
        && last_b[slot] == B[0];
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        last_a[slot] = A[0];
        last_b[slot] = B[0];
        launched[slot] = 1; // otherwise a first launch on zeros would look like a second one
    }
    if (known)
        return;

    // Place: blocks on the last row and column reach over the edges of C.
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    // Multiply.
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
