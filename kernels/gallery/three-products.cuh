// float32 products from tensor cores that read 11 bits of a number: each number becomes two parts,
// and three products of parts replace one product. Tiles, the ring of stages, and what fills and
// empties it. The kernel defines BN (64, 128, 192 or 256) and what depends on the type of the parts:
//
//     TERMS             how many parts lie in 128 bytes
//     SCALE             what small parts were multiplied by
//     split             splits numbers of A, and of B
//     term_of           the order of B's terms
//     multiply          a product of parts
//
// B is split once, by all blocks together, which write its parts to the workspace, laid out as the
// tensor cores read them. Then the blocks meet, and from there on one thread per block fetches whole
// tiles with the copy engine. A is fetched as it is and split on its way to registers.
//
// There is one block per multiprocessor, and it computes one tile of 128×BN after the other. Two
// warpgroups of four warps are consumers, with 64×BN elements each; one thread of a third, the
// producer, keeps a ring of stages in shared memory full. The two blocks of a cluster, one below the
// other, need the same columns of B: one fetches the big parts for both, the other the small ones.
#pragma once

#include "hopper.cuh"

#ifndef BN
#define BN 256
#endif
#ifndef TOTAL_WORDS
#define TOTAL_WORDS 1
#endif
#define BM 128
#define PIECES (BN / 64)
#define A_BOX (BM * 128)             // 32 columns of A
#define A_BYTES (TERMS / 32 * A_BOX)
#define B_HALF (BN * 128)            // the big parts of a step, or the small ones
#define STAGE_BYTES (A_BYTES + 2 * B_HALF)
#define STAGES (196608 / STAGE_BYTES)
#define BAND 8                       // pairs of rows of tiles

#include "tiles.cuh"

struct Parts { unsigned big[4], small[4]; };  // of 16 rows, for one product

// Splits four numbers of a row: 0 is the upper one of this lane's two rows, 1 the lower one. They
// are terms of one product or of two.
static __device__ __forceinline__ void split(float4 x, Parts *a, int row);
// Splits numbers of B for 16 bytes of big parts and as many of small ones.
static __device__ __forceinline__ void split(const float (&x)[TERMS / 8], uint4 &big, uint4 &small);
// Which term is at place i of the 16 bytes number j of 64: the order in which lanes load A.
static __device__ __forceinline__ int term_of(int i, int j);
// sum = (fresh ? 0 : sum) + a·b, for 64 rows, 64 columns and TERMS / 4 terms.
static __device__ __forceinline__ void multiply(float (&sum)[32], const unsigned (&a)[4],
                                                uint64_t b, bool fresh);

static __device__ __forceinline__ int steps_of(int K) { return (K + TERMS - 1u) / TERMS; }

// -- Packing -------------------------------------------------------------------------------------

// Where 16 bytes of a row are in a box with rows of 128 bytes: their index is XORed with the row's
// index modulo 8, so that eight rows lie in different banks.
static __device__ __forceinline__ int place_of(int row, int sixteen)
{
    return row * 128 + (sixteen ^ row % 8) * 16;
}

// Splits B. For each tile and step, BN columns become rows of 128 bytes, of big parts, then of small
// ones. Beyond the matrix there are zeros. A warp takes 32 columns and half a step at a time, a lane
// four columns; the next warp takes what follows in memory.
static __device__ __forceinline__ void split_B(const float *B, int N, int K, char *to)
{
    const int quarter = threadIdx.x % 32 / 8, steps = steps_of(K);
    const int groups = (N + BN - 1) / BN * (BN / 32), warps = gridDim.x * (blockDim.x / 32);
    #pragma unroll 1
    for (int job = (blockIdx.x * blockDim.x + threadIdx.x) / 32; job < groups * steps * 2;
         job += warps) {
        const int half = job / groups, first = job % groups * 32 + threadIdx.x % 8;
        float x[4][TERMS / 8];
        #pragma unroll
        for (int i = 0; i < TERMS / 2; ++i) {
            const int column = first + i / (TERMS / 8) * 8;
            const int k = half * (TERMS / 2) + term_of(i % (TERMS / 8), quarter);
            x[i / (TERMS / 8)][i % (TERMS / 8)] =
                column < N && k < K ? __ldg(B + (size_t)k * N + column) : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int column = first + i * 8;
            char *const place = to + (size_t)(column / BN * steps + half / 2) * 2 * B_HALF
                + place_of(column % BN, half % 2 * 4 + quarter);
            uint4 big, small;
            split(x[i], big, small);
            *(uint4 *)place = big;
            *(uint4 *)(place + B_HALF) = small;
        }
    }
}

// Copies A to boxes of 128 rows and 32 columns, as a tensor map delivers them, if its rows do not
// start at multiples of 16 bytes, which a tensor map requires.
static __device__ __forceinline__ void copy_A(const float *A, int M, int K, char *to)
{
    const int fours = steps_of(K) * (TERMS / 4);
    const size_t count = (size_t)(M + 2 * BM - 1) / (2 * BM) * (2 * BM) * fours;
    #pragma unroll 2
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int row = i / fours, four = i % fours;
        float x[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            x[j] = row < M && four * 4 + j < K ? __ldg(A + (size_t)row * K + four * 4 + j) : 0.0f;
        char *const box = to + (size_t)(row / BM * (fours / 8) + four / 8) * A_BOX;
        *(float4 *)(box + place_of(row % BM, four % 8)) = make_float4(x[0], x[1], x[2], x[3]);
    }
}

// -- Producer ------------------------------------------------------------------------------------

static __device__ __forceinline__ char *place_of_A(char *workspace, int N, int K)
{
    return workspace + (size_t)((N + BN - 1) / BN) * steps_of(K) * 2 * B_HALF;
}

static __device__ __forceinline__ void produce(const CUtensorMap &A_map, char *workspace, int M,
                                               int N, int K, unsigned ring, unsigned full,
                                               unsigned empty)
{
    const int half = blockIdx.x % 2 * B_HALF, steps = steps_of(K);
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        // To the compiler these change, so that it keeps nothing for the next tile in registers: the
        // producer has only 24.
        change(M), change(N), change(K);
        const Tile tile = tile_of(pair, M, N);
        const char *a = place_of_A(workspace, N, K) + (size_t)(tile.row / BM) * steps * A_BYTES;
        const char *b = workspace + (size_t)(tile.column / BN) * steps * 2 * B_HALF + half;
        #pragma unroll 1
        for (int k = 0; k < K; k += TERMS, a += A_BYTES, b += 2 * B_HALF) {
            const unsigned stage = ring + slot * STAGE_BYTES, barrier = full + 8 * slot;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(barrier, STAGE_BYTES);
            if (K % 4 == 0)
                #pragma unroll
                for (int i = 0; i < TERMS; i += 32)
                    fetch(stage + i / 32 * A_BOX, A_map, k + i, tile.row, barrier);
            else
                fetch(stage, a, A_BYTES, barrier);
            fetch_for(3, stage + A_BYTES + half, b, B_HALF, barrier);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
}

// -- Consumers -----------------------------------------------------------------------------------

// The row of A in place of row `i` of a product. Rows that lie in the same banks, four apart, are
// loaded at the same time, as each lane takes 16 bytes of one half of a row.
static __device__ __forceinline__ int row_of(int i) { return i % 2 * 4 + i / 2; }

// Splits what this lane multiplies of 16 terms.
static __device__ __forceinline__ void load(Parts *a, unsigned from)
{
    #pragma unroll
    for (int row = 0; row < 2; ++row) {
        float4 x;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from + row * 1024)
                     : "memory");
        split(x, a, row);
    }
}

// total += sum · factor.
static __device__ __forceinline__ void add(float (&total)[32], float (&rest)[32],
                                           const float (&sum)[32], float factor)
{
    #pragma unroll
    for (int i = 0; i < 32; ++i) {
        const float old = total[i];
        if (TOTAL_WORDS == 1) {
            total[i] = fmaf(sum[i], factor, old);
        } else {
            const float more = fmaf(sum[i], factor, rest[i]);
            total[i] += more;
            rest[i] = more - (total[i] - old);
        }
        change(total[i]);  // computed here, before the tensor cores write to `sum` again
    }
}

static __device__ __forceinline__ void write(const float (&total)[PIECES][32], float *C, int M,
                                             int N, int row, int column)
{
    #pragma unroll
    for (int i = 0; i < BN / 4; ++i) {
        const int r = row + i % 2 * 8, c = column + i / 2 * 8;
        const float left = total[i / 16][i % 16 * 2], right = total[i / 16][i % 16 * 2 + 1];
        float *const to = C + (size_t)r * N + c;
        if (r < M && N % 2 == 0 && c < N)
            *(float2 *)to = make_float2(left, right);
        if (r < M && N % 2 == 1 && c < N)
            to[0] = left;
        if (r < M && N % 2 == 1 && c + 1 < N)
            to[1] = right;
    }
}

static __device__ __forceinline__ void consume(float *C, int M, int N, int K, unsigned ring,
                                               unsigned full, unsigned empty)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int row = row_of(lane / 4);
    const unsigned a_at = ring + warp * 16 * 128 + place_of(row, lane % 4);
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        float total[PIECES][32], rest[PIECES][32], large[32], little[32];
        #pragma unroll
        for (int i = 0; i < BN / 2; ++i)
            total[i / 32][i % 32] = rest[i / 32][i % 32] = 0.0f;

        Parts a[4];
        unsigned used = 0;  // the barrier of the slot before
        #pragma unroll 1
        for (int k = 0; k < K; k += TERMS) {
            wait_for_products<0>(little);
            if (k > 0)
                arrive_in_both(used);
            wait(full + 8 * slot, phase);
            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece) {
                const int before = (piece + PIECES - 1) % PIECES;
                const uint64_t b_big
                    = descriptor_of(ring + slot * STAGE_BYTES + A_BYTES + piece * 64 * 128);
                const uint64_t b_small = b_big + (B_HALF >> 4);

                // Products are in flight at all times: the big ones while small ones are added ...
                if (piece > 0)
                    begin_products();
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int sixteen = j * TERMS / 64;
                    if (piece == 0 && j * TERMS % 64 == 0)
                        load(&a[j], ((a_at + slot * STAGE_BYTES) ^ (sixteen % 2 * 64))
                             + sixteen / 2 * A_BOX);
                    if (piece == 0) {
                        #pragma unroll
                        for (int i = 0; i < 4; ++i)
                            change(a[j].big[i]);
                        begin_products();
                    }
                    multiply(large, a[j].big, b_big + 2 * j, j == 0);
                }
                end_products();
                wait_for_products<1>(little);
                if (piece > 0 || k > 0)
                    add(total[before], rest[before], little, 1.0f / SCALE);

                // ... and vice versa.
                #pragma unroll
                for (int j = 0; piece == 0 && j < 16; ++j)
                    change(a[j / 4].small[j % 4]);
                begin_products();
                #pragma unroll
                for (int j = 0; j < 4; ++j) {
                    multiply(little, a[j].small, b_big + 2 * j, j == 0);
                    multiply(little, a[j].big, b_small + 2 * j, false);
                }
                end_products();
                wait_for_products<1>(large);
                add(total[piece], rest[piece], large, 1.0f);
            }
            used = empty + 8 * slot;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
        wait_for_products<0>(little);
        arrive_in_both(used);
        add(total[PIECES - 1], rest[PIECES - 1], little, 1.0f / SCALE);

        const Tile tile = tile_of(pair, M, N);
        write(total, C, M, N, tile.row + warp * 16 + row, tile.column + lane % 4 * 2);
    }
}

// -- The kernel ----------------------------------------------------------------------------------

static __device__ unsigned arrived;

static __device__ __forceinline__ void three_products(const CUtensorMap &A_map, const float *A,
                                                      const float *B, float *C, char *workspace,
                                                      int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned ring = ((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            init_barrier(full + 8 * stage, 1);
            init_barrier(empty + 8 * stage, 16);  // eight warps in each of two blocks
        }
        publish_barriers();
    }
    if (K % 4 != 0)
        copy_A(A, M, K, place_of_A(workspace, N, K));
    split_B(B, N, K, workspace);
    publish_all_stores();
    __syncthreads();
    synchronize_cluster();

    // Registers move from the producer's threads to those that multiply.
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            synchronize_grid(arrived);
            publish_all_stores();
            produce(A_map, workspace, M, N, K, ring, full, empty);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(C, M, N, K, ring, full, empty);
    }

    // No block exits while the other may still send to it or report empty stages.
    __syncwarp();
    synchronize_cluster();
}
