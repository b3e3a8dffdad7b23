// A ring of stages in shared memory. The first warpgroup, the producer, fills stages with parts of A
// and B; the others, the consumers, multiply them, tile by tile. A stage has two barriers. A phase
// of `full` ends when the stage's bytes have arrived; a phase of `empty` ends when the consumers of
// both blocks of the cluster have read it: of both, because each block also fetches half of B for
// the other one.
//
// The kernel defines BM, BN and BAND (see tiles.cuh), BK (terms of a step), STAGE_BYTES, STAGES, and
// CONSUMERS (how many warpgroups multiply).
#pragma once

#include "hopper.cuh"
#include "tiles.cuh"

#ifndef ARRIVALS
#define ARRIVALS CONSUMERS  // who reports that a stage has been read: warpgroups
#endif

// Where the ring is, and how far this thread has come. It starts at a multiple of 1,024 bytes, as
// swizzled boxes must; the drafts of C and the barriers follow it. `slot` is the current stage, and
// `phase` the parity of the round. A consumer waits for `full` in this phase, the producer for
// `empty` in the one before, which in the first round counts as over (see `wait`).
struct Ring {
    unsigned start, barriers, slot = 0, phase = 0;

    __device__ __forceinline__ Ring(const char *shared, unsigned draft_bytes)
        : start(((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024),
          barriers(start + STAGES * STAGE_BYTES + draft_bytes) {}
    __device__ __forceinline__ unsigned stage() const { return start + slot * STAGE_BYTES; }
    __device__ __forceinline__ unsigned full() const { return barriers + 16 * slot; }
    __device__ __forceinline__ unsigned empty() const { return barriers + 16 * slot + 8; }
    __device__ __forceinline__ void next()
    {
        if (++slot == STAGES)
            slot = 0, phase ^= 1;
    }
    // Meanwhile the copy engine gets the tensor maps.
    template <typename... Maps>
    __device__ __forceinline__ void set_up(int producer_threads, const Maps &...maps) const
    {
        if (threadIdx.x == 0) {
            (prefetch_map(maps), ...);
            for (int i = 0; i < STAGES; ++i) {
                init_barrier(barriers + 16 * i, producer_threads);
                init_barrier(barriers + 16 * i + 8, 2 * ARRIVALS);  // of both blocks
            }
            publish_barriers();
        }
        synchronize_cluster();
    }
    // When all stages are empty, nothing will be sent to this block any more, and it may exit.
    __device__ __forceinline__ void wait_until_empty()
    {
        for (int i = 0; i < STAGES; ++i, next())
            wait(empty(), phase ^ 1);
    }
};

// The first warpgroup produces, the others consume. A block with two consumers has 168 registers per
// thread. There the producer gives some of its own to them; the arguments say how many each thread
// has from then on.
template <int PRODUCER_REGISTERS, int CONSUMER_REGISTERS, typename Produce, typename Consume>
static __device__ __forceinline__ void divide_work(Produce produce, Consume consume)
{
    if (threadIdx.x < 128) {
#if CONSUMERS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(PRODUCER_REGISTERS));
#endif
        produce();
    } else {
#if CONSUMERS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(CONSUMER_REGISTERS));
#endif
        consume();
    }
}

// Reports to both blocks that a warpgroup has read a stage: both fill a part of it.
static __device__ __forceinline__ void report(unsigned empty)
{
    if (threadIdx.x % 128 < 2)
        arrive_in(threadIdx.x % 128, empty);
}

// Calls fill(stage, barrier, tile, k) for every step, as soon as the stage is empty.
template <typename Fill>
static __device__ __forceinline__ void fill_stages(Ring ring, int M, int N, int K, Fill fill)
{
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        const Tile tile = tile_of(pair, M, N);
        #pragma unroll 1
        for (int k = 0; k < K; k += BK, ring.next()) {
            wait(ring.empty(), ring.phase ^ 1);
            fill(ring.stage(), ring.full(), tile, k);
        }
    }
    ring.wait_until_empty();
}

// What the copy engine would do, by the 128 threads of the producer: copies rows of 128 bytes from a
// matrix whose rows are `pitch` elements apart, swizzled. The first `wanted` rows come from the
// matrix, the others are zeros. `from` is this thread's element of the first row: see `place_in_row`.
template <typename Element>
static __device__ __forceinline__ int place_in_row()
{
    return threadIdx.x % (128 / (int)sizeof(Element));
}

template <typename Element>
static __device__ __forceinline__ void copy_rows(char *to, const Element *from, size_t pitch,
                                                 int rows, int wanted)
{
    constexpr int TOGETHER = sizeof(Element);  // rows that 128 threads copy at a time
    const int first = threadIdx.x * TOGETHER / 128, at = place_in_row<Element>() * TOGETHER;
    from += first * pitch;
    #pragma unroll 1
    for (int row = first; row < rows; row += 8 * TOGETHER) {
        Element values[8];
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            values[i] = row + i * TOGETHER < wanted ? from[i * TOGETHER * pitch] : Element();
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int r = row + i * TOGETHER;
            if (rows % (8 * TOGETHER) == 0 || r < rows)
                *(Element *)(to + r * 128 + (at ^ r % 8 * 16)) = values[i];
        }
        from += 8 * TOGETHER * pitch;
    }
}

// A product of a warpgroup, m64n(BN), and its operands in an assembler statement: BN / 2 sums, two
// descriptors, and whether it starts from zero.
#if BM == 128
#define WGMMA(types) "wgmma.mma_async.sync.aligned.m64n256" types " {" NAMES_128 "}, %128, %129"
#define SUMS(kind) SUMS_128(kind, 0)
#define FRESH "%130"
#else
#define WGMMA(types) "wgmma.mma_async.sync.aligned.m64n128" types " {" NAMES_64 "}, %64, %65"
#define SUMS(kind) SUMS_64(kind, 0)
#define FRESH "%66"
#endif

// A consumer's loop over tiles and steps. The caller says what differs:
//
//     multiply(sum, stage, warpgroup, fresh)   starts the products of a step
//     finish(sum, tile)                        writes a tile's sums, or keeps some of them
//     write_part(part)                         writes one of PARTS parts of what was kept
//
// Part i is written in step i of the next tile, while the tensor cores multiply.
template <int PARTS, typename Number, typename Multiply, typename Finish, typename Write>
static __device__ __forceinline__ void multiply_tiles(Ring ring, int M, int N, int K,
                                                      Multiply multiply, Finish finish,
                                                      Write write_part)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    bool is_first = true;
    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        Number sum[BN / 2];
        unsigned previous = 0;  // the barrier `empty` of the step before
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            wait(ring.full(), ring.phase);
            begin_products();
            multiply(sum, ring.stage(), warpgroup, k == 0);
            end_products();

            // If there are fewer steps than parts, the last step writes all that are left.
            #pragma unroll
            for (int part = 0; part < PARTS; ++part)
                if (!is_first && (k == part * BK || (k < part * BK && k + BK >= K)))
                    write_part(part);

            // The previous step is done: its stage may be filled again.
            wait_for_products<1>(sum);
            if (k > 0)
                report(previous);
            previous = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(previous);
        finish(sum, tile_of(pair, M, N));
        is_first = false;
    }
    #pragma unroll
    for (int part = 0; part < PARTS; ++part)
        write_part(part);
}
