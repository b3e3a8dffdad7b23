// /// matbench
// name = "tiled-dynamic"
// summary = "T×T tiles in shared memory that is sized at launch"
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// shared_bytes = "2 * TILE * TILE * 4"
// [model]
// global_loads = "2 * M * N * K / TILE"
// ///

// A block computes one T×T tile of C as in tiled, but the source does not say how wide a tile is:
// it is as wide as the block, and the launch sizes the shared memory to match. One compiled kernel
// then serves every T; the price is a loop whose length the compiler cannot know. A launch gives
// one piece of shared memory, so both tiles lie in it, A's first and B's behind it.

extern "C" __global__ void tiled_dynamic(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    extern __shared__ float tiles[];
    const int width = blockDim.x;
    const int b = width * width;  // where B's tile begins

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * width + ty;
    const int column = blockIdx.x * width + tx;
    float sum = 0.0f;

    for (int start = 0; start < K; start += width) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        tiles[ty * width + tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        tiles[b + ty * width + tx] =
            column < N && start + ty < K ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < width; ++k)
            sum += tiles[ty * width + k] * tiles[b + k * width + tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
