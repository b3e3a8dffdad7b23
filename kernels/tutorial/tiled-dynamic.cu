// /// matbench
// name = "tiled-dynamic"
// summary = "T×T tiles in shared memory that is sized at launch"
// previous = "tiled"
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

// A block computes one T×T tile of C exactly as in tiled; only the storage of the tiles differs. A
// static array has its size in the source and is limited to 48 KB. An `extern` array gets its size
// at launch: as much as the device allows, and different amounts each time. A launch provides a
// single array, so it holds both tiles: A's first, then B's.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void tiled_dynamic(const float *A, const float *B, float *C,
                                         int M, int N, int K)
{
    extern __shared__ float tiles[];
    const int b = TILE * TILE;  // where B's tile starts

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;
    float sum = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        tiles[ty * TILE + tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        tiles[b + ty * TILE + tx] =
            column < N && start + ty < K ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < TILE; ++k)
            sum += tiles[ty * TILE + k] * tiles[b + k * TILE + tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
