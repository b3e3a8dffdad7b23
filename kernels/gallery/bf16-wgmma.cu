// /// matbench
// name = "bf16-wgmma"
// summary = "bfloat16 in, float32 out: both factors in shared memory, all copies by TMA"
// group = "gallery"
// previous = "tf32x3"
// requires = ["cuda", "sm_90a"]
// precision = "bfloat16"
// args = ["tensor_map(A, BM, 64)", "tensor_map(B, 64, 64)", "tensor_map(C, 16, 32)",
//         "A", "B", "C", "M", "N", "K"]
// [sweep]
// BM = [64, 128]
// BAND = [8]
// [tune]
// BAND = [1, 2, 4, 8, 16]
// [launch]
// where = ["max_shared_bytes_per_block >= 230464"]
// block = ["128 + 2 * BM"]
// grid = ["2 * min(multiprocessors // 2, ceil_div(M, 2 * BM) * ceil_div(N, 2 * BM))"]
// shared_bytes = "230464"
// [model]
// global_loads = "M * N * K / (2 * BM) + M * N * K / (2 * BM)"
// ///

// Adds: bfloat16 inputs, which need no splitting. So TMA fetches A and B as they are, both factors
//   are multiplied from shared memory, and TMA writes C. Nearly all of the code is new.
// Predicted: at most 1,070 TFLOP/s if the tensor cores never wait, at 1.98 GHz.
// Measured: 219 TFLOP/s at n = 1024, 94% of cuBLAS in bfloat16 (H200)
//   754 TFLOP/s at n = 4096, 100% of cuBLAS in bfloat16 (H200)
//   809 TFLOP/s at n = 8192, 102% of cuBLAS in bfloat16 (H200)
//
// The plan is that of tf32x3. In detail:
//
// - wgmma: a warpgroup of four warps starts products of 64×16 by 16×256 and continues; it waits for
//   them later. Here both factors are in shared memory and the sums in the warpgroup's registers.
// - TMA (tensor maps): one thread requests a box of a matrix. The copy engine computes the
//   addresses, fills in zeros beyond the edge, stores the box so that eight rows lie in different
//   banks (swizzling), and reports the number of bytes to a barrier.
// - Clusters: two blocks, one below the other, need the same columns of B. Each fetches half of
//   them, and the engine delivers to both: a block receives 48 KiB per step but loads only 32 KiB
//   from the L2 cache.
// - Warp specialisation: one warpgroup keeps the ring of stages full and needs few registers. The
//   other two take over its spare registers (setmaxnreg) for 64×256 sums each, which makes a tile
//   of 128×256 per block. For small products BM = 64: one warpgroup and 64×128 sums. n = 1024 has
//   32 large tiles or 128 small ones, for 132 multiprocessors.
// - Persistent grid: there is one block per multiprocessor, and it computes one tile after the
//   other. The ring never runs empty in between: the first steps of the next tile arrive while the
//   sums of this one are written. The copy engine writes them too, 16×32 at a time from shared
//   memory, in whole lines and without making a warp wait for the last of them. Tiles are taken in
//   bands of BAND pairs, so that blocks that run at the same time share rows of A and columns of B
//   in the L2 cache.
//
// TMA requires rows that start at multiples of 16 bytes. If they do not (K or N not a multiple of
// 8), the producer's threads copy value by value to the same places: correct, but slow. bf16-packed
// is for such sizes.

#include "hopper.cuh"
#include <cuda_bf16.h>

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#define BN (2 * BM)
#define BK 64
#define WARPGROUPS (BM / 64)  // those that multiply
#define A_BYTES (BM * BK * 2)
#define B_BOX (BK * 64 * 2)  // 64 columns of B
#define STAGE (A_BYTES + BN / 64 * B_BOX)
#define STAGES (196608 / STAGE)
#define DRAFT (16 * 32 * 4)  // 16 rows and 32 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)

#include "tiles.cuh"

// Waits until both blocks have reported every stage empty: nothing will be sent to this block any
// more, and it may exit.
static __device__ __forceinline__ void wait_for_last_reports(int slot, unsigned phase,
                                                             unsigned empty)
{
    for (int i = 0; i < STAGES; ++i) {
        wait(empty + 8 * slot, phase ^ 1);
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
}

// -- Producer ------------------------------------------------------------------------------------

static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               int M, int N, int K, unsigned ring, unsigned full,
                                               unsigned empty)
{
    const int upper = blockIdx.x % 2, clusters = gridDim.x / 2;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += clusters) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const unsigned stage = ring + slot * STAGE;
            wait(empty + 8 * slot, phase ^ 1);
            arrive_and_expect(full + 8 * slot, STAGE);
            fetch(stage, A_map, k, tile.row, full + 8 * slot);
            #pragma unroll
            for (int i = 0; i < BN / 128; ++i) {
                const int box = upper * (BN / 128) + i;
                fetch_for(3, stage + A_BYTES + box * B_BOX, B_map, tile.column + box * 64, k,
                          full + 8 * slot);
            }
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    wait_for_last_reports(slot, phase, empty);
}

// Without TMA: copies rows of 64 values, of which `left` are in the matrix. The index of each
// 16 bytes in a row is XORed with the row's index modulo 8.
static __device__ __forceinline__ void copy_rows(char *to, const __nv_bfloat16 *from, size_t pitch,
                                                 int rows, int left)
{
    const int place = threadIdx.x % 64, first = threadIdx.x / 64;
    from += first * pitch;
    #pragma unroll 1
    for (int row = first; row < rows; row += 16) {
        __nv_bfloat16 values[8];
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            values[i] = row + i * 2 < left ? from[i * 2 * pitch] : __float2bfloat16(0.0f);
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            *(__nv_bfloat16 *)(to + (row + i * 2) * 128 + ((place / 8) ^ ((first + i * 2) % 8)) * 16
                               + place % 8 * 2) = values[i];
        from += 16 * pitch;
    }
}

static __device__ __forceinline__ void produce_by_hand(const __nv_bfloat16 *A,
                                                       const __nv_bfloat16 *B, int M, int N, int K,
                                                       char *tiles, unsigned full, unsigned empty)
{
    const int place = threadIdx.x % 64, clusters = gridDim.x / 2;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += clusters) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            char *const stage = tiles + slot * STAGE;
            wait(empty + 8 * slot, phase ^ 1);
            copy_rows(stage, A + (size_t)tile.row * K + k + place, K, BM,
                      k + place < K ? M - tile.row : 0);
            #pragma unroll 1
            for (int box = 0; box < BN / 64; ++box) {
                const int column = tile.column + box * 64 + place;
                copy_rows(stage + A_BYTES + box * B_BOX, B + (size_t)k * N + column, N, BK,
                          column < N ? K - k : 0);
            }
            publish_stores();
            arrive(full + 8 * slot);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    wait_for_last_reports(slot, phase, empty);
}

// -- Consumers -----------------------------------------------------------------------------------

#if BM == 128
#define SUMS SUMS_128("+f", 0)
#define WGMMA "m64n256k16.f32.bf16.bf16 {" NAMES_128 "}, %128, %129"
#define FRESH "%130"
#else
#define SUMS SUMS_64("+f", 0)
#define WGMMA "m64n128k16.f32.bf16.bf16 {" NAMES_64 "}, %64, %65"
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×16 by 16×BN, both in shared memory; K runs fastest in a, and
// the columns do in b.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 "wgmma.mma_async.sync.aligned." WGMMA ", add, 1, 1, 0, 1;\n"
                 "}" : SUMS : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Stores two adjacent sums of a row to a box of 32 columns: `eight` is the index of eight columns,
// `pair` that of the pair within them.
static __device__ __forceinline__ void draw(unsigned draft, int row, int eight, int pair, float x,
                                            float y)
{
    const unsigned place = (eight * 2 + pair / 2) ^ (row % 8);
    const unsigned to = draft + row * 128 + place * 16 + pair % 2 * 8;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(to), "f"(x), "f"(y) : "memory");
}

static __device__ __forceinline__ void deliver_by_hand(float *C, int M, int N, unsigned from,
                                                       int column, int row)
{
    const int lane = threadIdx.x % 32;
    float *to = C + (size_t)row * N + column + lane;
    #pragma unroll 1
    for (int i = 0; i < 16 && row + i < M; ++i) {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value)
                     : "r"(from + i * 128 + ((lane / 4) ^ (i % 8)) * 16 + lane % 4 * 4));
        if (column + lane < N)
            *to = value;
        to += N;
    }
    __syncwarp();
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, bool has_maps,
                                               float *C, int M, int N, int K, unsigned ring,
                                               unsigned full, unsigned empty)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const int lane = threadIdx.x % 32, group = warp / 4, clusters = gridDim.x / 2;
    const unsigned drafts = ring + STAGES * STAGE + warp * 2 * DRAFT;
    const bool odd = lane / 4 % 2;
    int slot = 0;
    unsigned phase = 0;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += clusters) {
        float sum[BN / 2];
        unsigned before = 0;  // the barrier of the slot whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const uint64_t a = rows_at(ring + slot * STAGE + group * 64 * 128, B_BOX);
            const uint64_t b = rows_at(ring + slot * STAGE + A_BYTES, B_BOX);
            wait(full + 8 * slot, phase);
            begin_products();
            #pragma unroll
            for (int i = 0; i < BK / 16; ++i)
                multiply(sum, a + i * (32 >> 4), b + i * (2048 >> 4), k == 0 && i == 0);
            end_products();

            // The previous step is done: both blocks may fill its stage again.
            wait_for_products<1>(sum);
            if (k > 0 && threadIdx.x % 128 < 2)
                arrive_in(threadIdx.x % 128, before);
            before = empty + 8 * slot;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
        wait_for_products<0>(sum);
        if (threadIdx.x % 128 < 2)
            arrive_in(threadIdx.x % 128, before);

        const Tile tile = tile_of(pair, M, N);
        // 32 columns at a time: to shared memory, swizzled as above, then by the copy engine to C.
        #pragma unroll
        for (int part = 0; part < BN / 32; ++part) {
            const unsigned draft = drafts + part % 2 * DRAFT;
            if (lane == 0)
                wait_until_read<1>();
            __syncwarp();
            #pragma unroll
            for (int i = 0; i < 2; ++i) {
                // Odd rows start with other columns than even rows, so that banks differ.
                const float *const near = &sum[(part * 4 + i) * 4], *const far = near + 8;
                #pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float *const one = near + half * 2, *const two = far + half * 2;
                    const int row = half * 8 + lane / 4;
                    draw(draft, row, odd ? i + 2 : i, lane % 4, odd ? two[0] : one[0],
                         odd ? two[1] : one[1]);
                    draw(draft, row, odd ? i : i + 2, lane % 4, odd ? one[0] : two[0],
                         odd ? one[1] : two[1]);
                }
            }
            if (has_maps) {
                publish_stores();
                __syncwarp();
                if (lane == 0)
                    deliver(C_map, draft, tile.column + part * 32, tile.row + warp * 16);
            } else {
                __syncwarp();
                deliver_by_hand(C, M, N, draft, tile.column + part * 32, tile.row + warp * 16);
            }
        }
    }
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
bf16_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const CUtensorMap __grid_constant__ C_map,
           const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N, int K)
{
    // The ring of stages starts at a multiple of 1,024 bytes. Two barriers per stage follow it.
    extern __shared__ char shared[];
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned ring = (start + 1023) / 1024 * 1024;
    const unsigned full = ring + STAGES * STAGE + DRAFTS, empty = full + 8 * STAGES;
    const bool has_maps = K % 8 == 0 && N % 8 == 0;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, has_maps ? 1 : 128);
            expect_arrivals(empty + 8 * stage, 2 * WARPGROUPS);  // of both blocks
        }
        publish_barriers();
    }
    synchronize_cluster();

    // With three warpgroups, registers move from the one that moves data to those that multiply.
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
#endif
        if (has_maps && threadIdx.x == 0)
            produce(A_map, B_map, M, N, K, ring, full, empty);
        if (!has_maps)
            produce_by_hand(A, B, M, N, K, shared + (ring - start), full, empty);
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 216;");
#endif
        consume(C_map, has_maps, C, M, N, K, ring, full, empty);
    }
}
