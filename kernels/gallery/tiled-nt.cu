// /// matbench
// name = "tiled-nt"
// summary = "A·Bᵀ from T×T tiles: rows of both operands, and one column of padding"
// group = "gallery"
// previous = "tiled"
// transpose = "NT"
// [sweep]
// TILE = [8, 16, 32]
// [launch]
// where = ["TILE * TILE <= max_threads_per_block"]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// [model]
// global_loads = "2 * M * N * K / TILE"
// ///

// As tiled, but B is transposed, N×K: an element of C is the product of a row of A and a row of B.
// Both operands are contiguous along K, so both tiles are loaded in the same way: neighbouring
// threads in x load neighbouring k, and each warp reads contiguous pieces of rows.
//
// The multiplication needs care: a thread multiplies row ty of one tile with row tx of the other,
// so at each k the threads of a warp read a column of b. Shared memory has 32 banks, word w is in
// bank w mod 32, and each bank serves one word at a time. If rows are 32 words long, a column lies
// in a single bank: 32 reads, one after the other. One unused word at the end of each row makes
// rows 33 words long, and a column lies in 32 different banks: one read. Tile a needs no padding,
// because the whole warp reads the same word of it.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void tiled_nt(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[TILE][TILE];
    __shared__ float b[TILE][TILE + 1];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int first_column = blockIdx.x * TILE;
    const float *a_row = A + (size_t)row * K;
    const float *b_row = B + (size_t)(first_column + ty) * K;  // what this thread loads, not uses
    float sum = 0.0f;

    for (int start = 0; start < K; start += TILE) {
        // Stage: one value of each tile per thread, zero beyond the edges.
        const int k = start + tx;
        a[ty][tx] = row < M && k < K ? a_row[k] : 0.0f;
        b[ty][tx] = first_column + ty < N && k < K ? b_row[k] : 0.0f;
        __syncthreads();

        // Multiply: row ty of one tile with row tx of the other.
        for (int i = 0; i < TILE; ++i)
            sum += a[ty][i] * b[tx][i];
        __syncthreads();  // nobody overwrites a tile that somebody still reads
    }

    const int column = first_column + tx;
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
