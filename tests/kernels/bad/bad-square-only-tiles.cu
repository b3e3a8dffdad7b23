// /// matbench
// name = "bad-square-only-tiles"
// summary = "Takes K for the length of B's rows"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// shared_bytes = "2 * TILE * TILE * 4"
// ///

// The mistake, in tiled-dynamic: B's rows are taken to be K long, as in a square matrix.

extern "C" __global__ void bad_square_only_tiles(const float *A, const float *B, float *C,
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
            column < N && start + ty < K ? B[(size_t)(start + ty) * K + column] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with column tx of the other.
        for (int k = 0; k < width; ++k)
            sum += tiles[ty * width + k] * tiles[b + k * width + tx];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
