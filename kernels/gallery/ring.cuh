// A ring of stages in shared memory: one warpgroup fills them with parts of A and B, the others
// multiply, tile by tile. The kernel defines BM, BN and BAND (see tiles.cuh), BK (terms of a step),
// STAGE (bytes), STAGES, and WARPGROUPS, those that multiply. A cluster has two blocks, and each
// fetches a part of both blocks' stages.
#include "hopper.cuh"
#include "tiles.cuh"

// Two barriers per stage follow the ring and the drafts of C; the ring starts at a multiple of 1,024
// bytes.
struct Ring {
    unsigned start, barriers, slot = 0, phase = 0;

    __device__ __forceinline__ Ring(const char *shared, unsigned draft_bytes)
        : start(((unsigned)__cvta_generic_to_shared(shared) + 1023) / 1024 * 1024),
          barriers(start + STAGES * STAGE + draft_bytes) {}
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
    // When all stages are empty, nothing will be sent to this block any more, and it may exit.
    __device__ __forceinline__ void wait_until_empty()
    {
        for (int i = 0; i < STAGES; ++i, next())
            wait(empty(), phase ^ 1);
    }
};

// The first warpgroup produces, the others consume. If there are two of these, registers move to
// them: so many remain for a thread.
template <int PRODUCER, int CONSUMER, typename Produce, typename Consume>
static __device__ __forceinline__ void divide_work(Produce produce, Consume consume)
{
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(PRODUCER));
#endif
        produce();
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(CONSUMER));
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
    ring.wait_until_empty();
}

// multiply(sum, stage, group, fresh) starts a warpgroup's products of a step, and finish(sum, tile)
// takes a tile's sums. Of what it keeps, write(part) writes one of PARTS parts in each of the first
// steps of the next tile, while the tensor cores multiply.
template <int PARTS, typename Number, typename Multiply, typename Finish, typename Write>
static __device__ __forceinline__ void consume(Ring ring, int M, int N, int K, Multiply multiply,
                                               Finish finish, Write write)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0) - 1;
    bool is_first = true;
    for (int i = blockIdx.x / 2; i < pairs_of_tiles(M, N); i += gridDim.x / 2) {
        Number sum[BN / 2];
        unsigned before = 0;  // the barrier of the stage whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            wait(ring.full(), ring.phase);
            begin_products();
            multiply(sum, ring.stage(), group, k == 0);
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
