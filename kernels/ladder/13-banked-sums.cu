// /// matbench
// name = "banked-sums"
// summary = "TMA copies, sums and factors in different register banks, equal work for every block"
// group = "ladder"
// previous = "pipelined"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, 128, 8)", "tensor_map(B, 8, 256)", "A", "B", "C", "M", "N", "K"]
// [sweep]
// STAGES = [8]
// [tune]
// STAGES = [3, 4, 6, 8, 12, 16]
// [launch]
// where = ["STAGES >= 2", "multiprocessors <= 1024",
//          "STAGES * 12304 + 16384 <= max_shared_bytes_per_block"]
// block = [384]
// grid = ["multiprocessors"]
// shared_bytes = "STAGES * 12304 + 16384"
// [model]
// global_loads = "M * N * K / 256 + M * N * K / 128"
// shared_loads = "M * N * K * (1 / 16 + 1 / 8)"
// ///

// Adds: copies by TMA instead of by the warps that multiply, sums and factors in different register
//   banks, and the last tiles shared by all blocks.
// Predicted: at most 62 TFLOP/s: 93.2% of the loop's instructions are multiply-adds, each reads one
//   register per bank, and all multiprocessors finish together.
// Measured: 53.0 TFLOP/s at n = 2048, 105% of cuBLAS (H200)
//   56.0 TFLOP/s at n = 4096, 109% of cuBLAS (H200)
//   56.4 TFLOP/s at n = 8192, 111% of cuBLAS (H200)
//
// Four changes to pipelined, whose tiles and products remain:
//
// - One warp requests boxes of A and B from the copy engine (TMA), which keeps a ring of stages in
//   shared memory full. The warps that multiply start no copies, compute no addresses for them and
//   meet at no barrier. They wait until a stage is full and announce that they have read it.
// - TMA cannot transpose A. A box has rows of 32 bytes, and a thread fetches four values of k at a
//   time for each of its rows: as many fetches as before. A row's values are replaced as soon as
//   the last product with them has started, so 32 registers are enough.
// - A multiply-add reads three registers, and the register file has two banks, even and odd. If a
//   row's products reuse the value of A, each still reads one of B and a sum: one cycle if they are
//   in different banks, two if not. The four values of a fetch lie in registers 4i .. 4i + 3, so
//   that B's even columns are in even registers. The sums should therefore be the other way round.
//   Sums that are stored 16 bytes at a time also lie in registers 4i .. 4i + 3. Here each pair is
//   stored to shared memory in reverse order, and put right when it is stored to C.
// - Tiles rarely fill the last round of blocks. There is one block per multiprocessor. It computes
//   whole tiles as long as all blocks can, and the steps of the remaining tiles are divided evenly
//   (Stream-K: Osama et al., arXiv 2301.03598). If a tile is shared, the block with its last steps
//   writes its sums to C, and sets a flag. The block with the steps before adds its own to them.
//
// Left to itself the compiler spoils the banks: it computes products in the order in which fetches
// arrive, and moves sums from register to register. keep_order() prevents that.
//
// TMA requires boxes that start at multiples of 16 bytes. If rows of A or B do not, four warps copy
// value by value to the same places.

#include <cuda.h>

#ifndef STAGES
#define STAGES 8
#endif
#define BM 128
#define BN 256
#define BK 8
#define WARPS 8  // that multiply: 2×4, 64×64 elements each
#define A_BYTES (4 * BK * BM)
#define B_BYTES (4 * BK * BN)
#define STAGE (A_BYTES + B_BYTES)
#define DRAFT (8 * 64)  // floats: eight rows of a warp's tile
#define LEAST 16        // steps of a block's share of the shared tiles, if a tile has that many

// -- Barriers in shared memory -------------------------------------------------------------------

static __device__ __forceinline__ void expect_arrivals(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives, and announces the bytes that must arrive too.
static __device__ __forceinline__ void arrive_and_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// Waits for the end of the barrier's even (0) or odd (1) phase.
static __device__ __forceinline__ void wait(unsigned barrier, unsigned phase)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"(barrier), "r"(phase) : "memory");
}

// Waits for all threads that multiply.
static __device__ __forceinline__ void synchronize_sums()
{
    asm volatile("bar.sync 1, %0;" :: "n"(32 * WARPS) : "memory");
}

// -- Division of the work ------------------------------------------------------------------------

// Steps first .. last - 1 of the tile that starts at this row and column of C.
struct Part { int row, column, first, last; };

struct Work {
    int across, steps, rounds, block, shared_steps, sharing;

    __device__ __forceinline__ Work(int M, int N, int K)
    {
        across = (N + BN - 1) / BN;
        steps = (K + BK - 1) / BK;
        const int tiles = (M + BM - 1) / BM * across, blocks = gridDim.x;
        rounds = tiles / blocks;
        const int left = tiles % blocks;
        shared_steps = left * steps;
        sharing = min(blocks, max(left, shared_steps / LEAST));
        // A block waits only for the one with the next lower blockIdx.x, which started before it.
        block = blocks - 1 - blockIdx.x;
    }

    // The block's next part; false if there is none.
    __device__ __forceinline__ bool part(int index, Part &next) const
    {
        int tile = index * gridDim.x + block, first = 0, last = steps;
        if (index >= rounds) {
            if (block >= sharing)
                return false;
            const int share = shared_steps / sharing, longer = shared_steps % sharing;
            const int begin = block * share + min(block, longer);
            const int end = begin + share + (block < longer);
            tile = begin / steps + index - rounds;
            first = max(begin - tile * steps, 0);
            last = min(end - tile * steps, steps);
            if (first >= last)
                return false;
            tile += rounds * gridDim.x;
        }
        next = {tile / across * BM, tile % across * BN, first, last};
        return true;
    }
};

// Whether a block's part of a shared tile is in C; reset by the block that adds to it.
static __device__ unsigned is_written[1024];

// -- Producer ------------------------------------------------------------------------------------

static __device__ __forceinline__ bool is_elected()
{
    unsigned elected;
    asm volatile("{\n"
                 ".reg .pred elected;\n"
                 "elect.sync _|elected, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, elected;\n"
                 "}" : "=r"(elected));
    return elected;
}

// Fetches a box of the matrix to shared memory; elements outside the matrix arrive as zeros.
static __device__ __forceinline__ void fetch(unsigned to, const CUtensorMap &map, int column,
                                             int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Calls fill(stage, barrier, part, k) for one step after the other.
template <typename Fill>
static __device__ __forceinline__ void produce(const Work &work, unsigned ring, unsigned full,
                                               unsigned empty, Fill fill)
{
    int slot = 0;
    unsigned phase = 1;
    Part part;
    for (int index = 0; work.part(index, part); ++index) {
        #pragma unroll 1
        for (int step = part.first; step < part.last; ++step) {
            wait(empty + 8 * slot, phase);
            fill(ring + slot * STAGE, full + 8 * slot, part, step * BK);
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    }
    // The other warps look one stage ahead, but do not use what they find.
    wait(empty + 8 * slot, phase);
    arrive(full + 8 * slot);
}

// Starts to copy 4 bytes to shared memory; writes zeros if not `wanted`.
static __device__ __forceinline__ void copy(unsigned to, const float *from, bool wanted)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(from), "r"(wanted ? 4 : 0) : "memory");
}

// Without TMA: a thread copies one column of the step in every 16th row of A, and two columns of B.
// Its copies arrive at the barrier when they are done.
static __device__ __forceinline__ void copy_stage(const float *A, const float *B, int M, int N,
                                                  int K, unsigned stage, unsigned barrier,
                                                  const Part &part, int k)
{
    const int thread = threadIdx.x % 128, a_k = thread % 8, a_row = thread / 8;
    const unsigned a_to = stage + a_row * 32 + ((a_k / 4) ^ (a_row / 4 % 2)) * 16 + a_k % 4 * 4;
    const unsigned b_to = stage + A_BYTES + thread * 4;
    const int row = part.row + a_row, column = part.column + thread;
    const float *a_from = A + (size_t)row * K + k + a_k;
    const float *b_from = B + (size_t)k * N + column;
    #pragma unroll
    for (int i = 0; i < 8; ++i, a_from += 16 * (size_t)K)
        copy(a_to + i * 16 * 32, a_from, row + i * 16 < M && k + a_k < K);
    #pragma unroll
    for (int i = 0; i < BK; ++i, b_from += N) {
        copy(b_to + i * 4 * BN, b_from, column < N && k + i < K);
        copy(b_to + i * 4 * BN + 512, b_from + 128, column + 128 < N && k + i < K);
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(barrier) : "memory");
}

// -- Consumers -----------------------------------------------------------------------------------

static __device__ __forceinline__ float4 load(unsigned from)
{
    float4 four;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w) : "r"(from));
    return four;
}

static __device__ __forceinline__ void load_row(float (&b)[16], unsigned from)
{
    #pragma unroll
    for (int j = 0; j < 16; j += 4) {
        const float4 four = load(from + 16 * j);
        b[j] = four.x, b[j + 1] = four.y, b[j + 2] = four.z, b[j + 3] = four.w;
    }
}

// Allows a kernel that waits for this one to start. There is none: what counts is that the compiler
// moves no instruction across it.
static __device__ __forceinline__ void keep_order()
{
    asm volatile("griddepcontrol.launch_dependents;");
}

// Writes eight rows of 64 sums to C, or adds them to what is there.
static __device__ __forceinline__ void write_rows(const float *draft, float *C, int row,
                                                  int column, int M, int N, bool adds)
{
    const int lane = threadIdx.x % 32;
    float *const to = C + (size_t)row * N + column + (lane ^ 1);
    float value[8][2];
    #pragma unroll
    for (int r = 0; r < 8; ++r)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
            value[r][half] = draft[r * 64 + half * 32 + lane];
    if (adds) {
        float there[8][2];
        #pragma unroll
        for (int r = 0; r < 8; ++r)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                there[r][half] = row + r < M && column + half * 32 + (lane ^ 1) < N
                    ? __ldcg(to + (size_t)r * N + half * 32) : 0.0f;
        #pragma unroll
        for (int r = 0; r < 8; ++r)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                value[r][half] += there[r][half];
    }
    #pragma unroll
    for (int r = 0; r < 8; ++r)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
            if (row + r < M && column + half * 32 + (lane ^ 1) < N)
                to[(size_t)r * N + half * 32] = value[r][half];
}

static __device__ __forceinline__ void consume(const Work &work, char *shared, unsigned ring,
                                               unsigned full, float *C, int M, int N)
{
    // Warps divide the tile, lanes the warp's: 8 rows of 4 lanes, numbered as in warp-tiled. A lane
    // has every eighth row, and four columns of every sixteen.
    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(0xffffffff, thread / 32, 0);
    const int across = lane % 2 + lane / 4 % 2 * 2, down = lane / 2 % 2 + lane / 8 * 2;
    const int m = warp / 4 * 64, n = warp % 4 * 64;
    float *const draft = (float *)(shared + STAGES * (STAGE + 16)) + warp * DRAFT;

    // TMA exchanges the halves of a row of A, four k each, in rows 4 to 7 of every eight.
    const unsigned a_low = ring + (m + down) * 32 + down / 4 * 16;
    const unsigned a_high = ring + (((m + down) * 32 + down / 4 * 16) ^ 16);
    const unsigned b_at = ring + A_BYTES + (n + across * 4) * 4;

    float4 a[8];     // four k of each row
    float b[2][16];  // for this k and for the next
    unsigned stage = 0, barrier = full, phase = 0;
    Part part;
    bool more = work.part(0, part);
    wait(barrier, phase);
    #pragma unroll
    for (int i = 0; i < 8; ++i)
        a[i] = load(a_low + 256 * i);
    load_row(b[0], b_at);

    #pragma unroll 1
    for (int index = 0; more;) {
        float sum[8][16];
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            #pragma unroll
            for (int j = 0; j < 16; ++j)
                sum[i][j] = 0.0f;

        #pragma unroll 1
        for (int left = part.last - part.first; left > 0; --left) {
            unsigned a_next = a_high + stage, b_next = b_at + stage;
            #pragma unroll
            for (int k = 0; k < BK; ++k) {
                // The last k's values have been fetched. Those for the next step follow.
                if (k == BK - 1) {
                    __syncwarp();
                    if (lane == 0)
                        arrive(barrier + 8 * STAGES);
                    stage += STAGE, barrier += 8;
                    if (stage == STAGES * STAGE)
                        stage = 0, barrier -= 8 * STAGES, phase ^= 1;
                    wait(barrier, phase);
                    a_next = a_low + stage, b_next = b_at + stage - B_BYTES;
                }
                load_row(b[1 - k % 2], b_next + (k + 1) * 4 * BN);
                if (k % 2 == 0)  // often enough, and it takes an issue slot
                    keep_order();

                // Back and forth, as in pipelined: a row begins with the value of B that the last
                // one ended with, and reads one of A and a sum. These are in different banks if
                // the column is even for even k, and odd for odd k.
                #pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float four[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
                    #pragma unroll
                    for (int next = 0; next < 16; ++next) {
                        const int turn = i % 2 == 0 ? next : 15 - next;
                        const int j = (k % 2 == 0 ? turn >= 14 : turn < 2) ? turn ^ 1 : turn;
                        sum[i][j] += four[k % 4] * b[k % 2][j];
                    }
                    if (k % 4 == 3)
                        a[i] = load(a_next + 256 * i);
                }
            }
        }

        // The sums for the steps that follow have to be in C before these can be added.
        const bool adds = part.last < work.steps;
        if (adds) {
            if (thread == 0) {
                volatile unsigned *const flag = is_written + work.block + 1;
                while (*flag == 0)
                    ;
                __threadfence();
                *flag = 0;
            }
            synchronize_sums();
        }

        // Eight rows at a time through shared memory, so that a warp writes 32 adjacent elements.
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            #pragma unroll
            for (int j = 0; j < 16; j += 4)
                *(float4 *)(draft + down * 64 + across * 4 + j * 4) =
                    make_float4(sum[i][j + 1], sum[i][j], sum[i][j + 3], sum[i][j + 2]);
            __syncwarp();
            write_rows(draft, C, part.row + m + i * 8, part.column + n, M, N, adds);
            __syncwarp();
        }

        if (part.first > 0) {
            __threadfence();
            synchronize_sums();
            if (thread == 0)
                *(volatile unsigned *)(is_written + work.block) = 1;
        }
        more = work.part(++index, part);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
banked_sums(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
         const float *A, const float *B, float *C, int M, int N, int K)
{
    // A ring of stages, two barriers per stage, then the drafts.
    extern __shared__ __align__(1024) char shared[];
    const unsigned ring = (unsigned)__cvta_generic_to_shared(shared);
    const unsigned full = ring + STAGES * STAGE, empty = full + 8 * STAGES;
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
    const bool has_maps = K % 4 == 0 && N % 4 == 0;
    const Work work(M, N, K);

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            expect_arrivals(full + 8 * stage, has_maps ? 1 : 128);
            expect_arrivals(empty + 8 * stage, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    // Registers move from the threads that move data to those that multiply.
    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (!has_maps)
            produce(work, ring, full, empty,
                    [&](unsigned stage, unsigned barrier, const Part &part, int k) {
                copy_stage(A, B, M, N, K, stage, barrier, part, k);
            });
        else if (warp == WARPS)
            if (is_elected())
                produce(work, ring, full, empty,
                        [&](unsigned stage, unsigned barrier, const Part &part, int k) {
                    arrive_and_expect(barrier, STAGE);
                    fetch(stage, A_map, k, part.row, barrier);
                    fetch(stage + A_BYTES, B_map, part.column, k, barrier);
                });
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        consume(work, shared, ring, full, C, M, N);
    }
}
