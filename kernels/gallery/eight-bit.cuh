// Products of 8-bit operands, both stored with K running fastest: tiles, the ring of stages that
// holds parts of A and B, what fills it, and the loop that empties it. The kernel defines BM (64 or
// 128) and BAND.
#include "hopper.cuh"

#define BN (2 * BM)
#define BK 128                // terms of a step: rows of 128 bytes
#define WARPGROUPS (BM / 64)  // those that multiply
#define A_BYTES (BM * BK)
#define STAGE ((BM + BN) * BK)
#define STAGES (196608 / STAGE)

#include "tiles.cuh"

// -- The ring of stages --------------------------------------------------------------------------

// A stage holds BM rows of A and BN rows of B, 128 bytes of each. Two barriers per stage follow the
// ring and the drafts of C; the ring starts at a multiple of 1,024 bytes.
struct Ring {
    unsigned start, barriers, slot = 0, phase = 0;

    __device__ __forceinline__ Ring(unsigned shared, unsigned draft_bytes)
        : start((shared + 1023) / 1024 * 1024), barriers(start + STAGES * STAGE + draft_bytes) {}
    __device__ __forceinline__ unsigned stage() const { return start + slot * STAGE; }
    __device__ __forceinline__ unsigned full() const { return barriers + 16 * slot; }
    __device__ __forceinline__ unsigned empty() const { return barriers + 16 * slot + 8; }
    __device__ __forceinline__ void next()
    {
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
    __device__ __forceinline__ void set_up(int producers) const
    {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; ++i) {
                expect_arrivals(barriers + 16 * i, producers);
                expect_arrivals(barriers + 16 * i + 8, 2 * WARPGROUPS);  // of both blocks
            }
            publish_barriers();
        }
        synchronize_cluster();
    }
};

// Reports to both blocks that a warpgroup has read a stage: both fill a part of it.
static __device__ __forceinline__ void report(unsigned empty)
{
    if (threadIdx.x % 128 < 2)
        arrive_in(threadIdx.x % 128, empty);
}

// Calls fill(stage, barrier, tile, k) for every step, as soon as the stage is empty.
template <typename Fill>
static __device__ __forceinline__ void produce(Ring ring, int M, int N, int K, Fill fill)
{
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int k = 0; k < K; k += BK, ring.next()) {
            wait(ring.empty(), ring.phase ^ 1);
            fill(ring.stage(), ring.full(), tile, k);
        }
    }
    // When all stages are empty, nothing will be sent to this block any more, and it may exit.
    for (int i = 0; i < STAGES; ++i, ring.next())
        wait(ring.empty(), ring.phase ^ 1);
}

// One thread: the copy engine fetches the block's rows of A, and half of those of B for both blocks.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               Ring ring, int M, int N, int K)
{
    const int lower = blockIdx.x % 2;
    produce(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        arrive_and_expect(barrier, STAGE);
        fetch(stage, A_map, k, tile.row, barrier);
        fetch_for(3, stage + A_BYTES + lower * (BM * BK), B_map, k, tile.column + lower * BM,
                  barrier);
    });
}

// Copies rows of 128 bytes of a matrix, swizzled as the copy engine does; zeros beyond the edge.
static __device__ __forceinline__ void copy_rows(char *to, const char *from, int rows, int row,
                                                 int end, int k, int K)
{
    const int place = threadIdx.x % 128;
    from += (size_t)row * K + k + place;
    #pragma unroll 8
    for (int i = 0; i < rows; ++i, from += K)
        to[i * 128 + (place ^ i % 8 * 16)] = row + i < end && k + place < K ? *from : 0;
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const void *A, const void *B, char *shared,
                                                       Ring ring, int M, int N, int K)
{
    const unsigned start = (unsigned)__cvta_generic_to_shared(shared);
    produce(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = shared + (stage - start);
        copy_rows(to, (const char *)A, BM, tile.row, M, k, K);
        copy_rows(to + A_BYTES, (const char *)B, BN, tile.column, N, k, K);
        publish_stores();
        arrive(barrier);
    });
}

// -- Products ------------------------------------------------------------------------------------

#if BM == 128
#define WGMMA(types) "wgmma.mma_async.sync.aligned.m64n256k32." types " {" NAMES_128 "}, %128, %129"
#define SUMS(kind) SUMS_128(kind, 0)
#define FRESH "%130"
#else
#define WGMMA(types) "wgmma.mma_async.sync.aligned.m64n128k32." types " {" NAMES_64 "}, %64, %65"
#define SUMS(kind) SUMS_64(kind, 0)
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×BN numbers (e4m3), both in shared memory.
static __device__ __forceinline__ void multiply(float (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("f32.e4m3.e4m3") ", add, 1, 1;\n"
                 "}" : SUMS("+f") : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// The same with int8: exact sums.
static __device__ __forceinline__ void multiply(int (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 WGMMA("s32.s8.s8") ", add;\n"
                 "}" : SUMS("+r") : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// The consumers: computes one tile after the other. finish(sum, tile) takes a tile's sums, and
// write(part) writes one of PARTS parts that it keeps: a part in each of the first steps of the
// next tile, while the tensor cores multiply.
template <int PARTS, typename Number, typename Finish, typename Write>
static __device__ __forceinline__ void consume(Ring ring, int M, int N, int K, Finish finish,
                                               Write write)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    bool is_first = true;
    for (int i = blockIdx.x / 2; i < pairs_of_tiles(M, N); i += gridDim.x / 2) {
        Number sum[BN / 2];
        unsigned before = 0;  // the barrier of the stage whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const uint64_t a = rows_at(ring.stage() + group * 64 * BK);
            const uint64_t b = rows_at(ring.stage() + A_BYTES);
            wait(ring.full(), ring.phase);
            begin_products();
            #pragma unroll
            for (int j = 0; j < BK / 32; ++j)
                multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), k == 0 && j == 0);
            end_products();

            // In the last step all that is left is written.
            #pragma unroll
            for (int part = 0; part < PARTS; ++part)
                if (!is_first && (k == part * BK || (k < part * BK && k + BK >= K)))
                    write(part);

            // The previous step is done: its stage may be filled again.
            wait_for_products<1>(sum);
            if (k > 0)
                report(before);
            before = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(before);
        finish(sum, tile_of(i, M, N));
        is_first = false;
    }
    #pragma unroll
    for (int part = 0; part < PARTS; ++part)
        write(part);
}
