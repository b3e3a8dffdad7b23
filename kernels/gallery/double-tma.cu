// /// matbench
// name = "double-tma"
// summary = "float64 on Hopper's tensor cores: TMA fetches, and warps do nothing but multiply"
// group = "gallery"
// previous = "double-mma"
// requires = ["cuda", "sm_90a"]
// args = ["tensor_map(A, 128, 16)", "tensor_map(B, 16, 16)", "A", "B", "C", "M", "N", "K"]
// [sweep]
// BAND = [4]
// [tune]
// BAND = [1, 2, 4, 8, 16]
// [launch]
// where = ["max_shared_bytes_per_block >= 197760"]
// block = [384]
// grid = ["2 * min(multiprocessors // 2, ceil_div(M, 256) * ceil_div(N, 128))"]
// shared_bytes = "197760"
// [model]
// global_loads = "M * N * K / 128 + M * N * K / 256"
// shared_loads = "M * N * K * (1 / 32 + 1 / 64)"
// ///

// Adds: TMA and warp specialization. In double-mma every thread also computes addresses and starts
//   copies, and all of them meet at a barrier twice in 16 k. Here one thread of a producer warpgroup
//   requests boxes of A and B for a ring of stages (see ring.cuh), and a warp that multiplies waits
//   only for bytes: in 16 k it executes 32 products, 24 loads and some 30 instructions more.
// Predicted: the 65 TFLOP/s of double-mma at n = 4096, of which fewer are lost: every instruction
//   that does not multiply costs energy, and power limits the clock.
//
// - Products are those of double-mma: a warp computes Cᵀ = Bᵀ·Aᵀ, 64 by 32 elements, and holds what
//   it multiplies next beside what it multiplies now.
// - A swizzled row of 128 bytes is 16 doubles: 16 k of A, or 16 columns of B. Eight rows lie in
//   different banks. So that the two rows of A that are read together do, they are four apart.
// - Tiles are 128×128, so a step of 16 k receives 32 KiB and half of B comes from the other block
//   of the cluster. There is one block per multiprocessor, with eight warps that multiply.
//
// TMA requires rows that start at multiples of 16 bytes. If they do not (K or N odd), the producer's
// threads copy value by value: correct, but slow. At n = 1000 there are only 64 tiles for 132
// multiprocessors, and double-mma is faster.

#ifndef BAND
#define BAND 4
#endif
#define BM 128
#define BN 128
#define BK 16
#define CONSUMERS 2
#define ARRIVALS 8  // warps
#define A_BYTES (BM * 128)
#define BOX_BYTES (BK * 128)  // 16 columns of B
#define STAGE_BYTES (A_BYTES + BN / 16 * BOX_BYTES)
#define STAGES (196608 / STAGE_BYTES)
#include "ring.cuh"

#define WM 32                   // rows of C of a warp
#define WN 64                   // and columns
#define DOWN (WM / 8)           // fragments of A in a warp's tile
#define WIDE (WN / 16)          // and of B

// One thread: it fetches the block's rows of A, and half of B's columns for both blocks.
static __device__ __forceinline__ void produce(const CUtensorMap &A_map, const CUtensorMap &B_map,
                                               Ring ring, int M, int N, int K)
{
    const int half = blockIdx.x % 2 * (BN / 32);
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        arrive_and_expect(barrier, STAGE_BYTES);
        fetch(stage, A_map, k, tile.row, barrier);
        #pragma unroll
        for (int box = 0; box < BN / 32; ++box)
            fetch_for(3, stage + A_BYTES + (half + box) * BOX_BYTES, B_map,
                      tile.column + (half + box) * 16, k, barrier);
    });
}

// 128 threads, where rows do not start at multiples of 16 bytes, which the engine requires.
static __device__ __forceinline__ void produce_by_hand(const double *A, const double *B, Ring ring,
                                                       int M, int N, int K)
{
    const int place = place_in_row<double>();
    fill_stages(ring, M, N, K, [&](unsigned stage, unsigned barrier, Tile tile, int k) {
        char *const to = (char *)__cvta_shared_to_generic(stage);
        copy_rows(to, A + (size_t)tile.row * K + k + place, K, BM,
                  k + place < K ? M - tile.row : 0);
        #pragma unroll 1
        for (int box = 0; box < BN / 16; ++box) {
            const int column = tile.column + box * 16 + place;
            copy_rows(to + A_BYTES + box * BOX_BYTES, B + (size_t)k * N + column, N, BK,
                      column < N ? K - k : 0);
        }
        publish_stores();
        arrive(barrier);
    });
}

// A lane's share of eight k: of WM rows of A, and of WN columns of B.
struct Fragments { double a[DOWN][2], b[WIDE][4]; };

// Two neighbours in a row.
static __device__ __forceinline__ void load(double &left, double &right, unsigned from)
{
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(left), "=d"(right) : "r"(from) : "memory");
}

// B's rows are two neighbouring k: b_at and b_next.
static __device__ __forceinline__ void fetch(Fragments &to, unsigned a_at, unsigned b_at,
                                             unsigned b_next)
{
    #pragma unroll
    for (int j = 0; j < WIDE; ++j) {
        load(to.b[j][0], to.b[j][1], b_at + j * BOX_BYTES);
        load(to.b[j][2], to.b[j][3], b_next + j * BOX_BYTES);
    }
    #pragma unroll
    for (int i = 0; i < DOWN; ++i)
        load(to.a[i][0], to.a[i][1], a_at + i * 1024);
}

// sum += b·a: 16 columns of B by eight rows of A.
static __device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[2],
                                                const double (&b)[4])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(a[0]), "d"(a[1]));
}

static __device__ __forceinline__ void multiply(double (&sum)[DOWN][WIDE][4], const Fragments &of)
{
    #pragma unroll
    for (int i = 0; i < DOWN; ++i)
        #pragma unroll
        for (int j = 0; j < WIDE; ++j)
            multiply(sum[i][j], of.a[i], of.b[j]);
}

// The row of A in place of row `i` of eight: rows that are loaded at the same time lie in other banks.
static __device__ __forceinline__ int row_of(int i) { return i % 2 * 4 + i / 2; }

// Writes the sums of a lane: pairs of neighbouring columns.
static __device__ __forceinline__ void write(const double (&sum)[DOWN][WIDE][4], double *C, int M,
                                             int N, int first_row, int column, int t)
{
    #pragma unroll
    for (int i = 0; i < DOWN * 2; ++i) {
        const int row = first_row + i / 2 * 8 + row_of(t * 2 + i % 2);
        #pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            const int c = column + j * 16;
            const double left = sum[i / 2][j][i % 2], right = sum[i / 2][j][i % 2 + 2];
            double *const to = C + (size_t)row * N + c;
            if (row < M && N % 2 == 0 && c < N)
                *(double2 *)to = make_double2(left, right);
            if (row < M && N % 2 == 1 && c < N)
                to[0] = left;
            if (row < M && N % 2 == 1 && c + 1 < N)
                to[1] = right;
        }
    }
}

static __device__ __forceinline__ void consume(Ring ring, double *C, int M, int N, int K)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4;
    const int row = warp / 2 * WM, column = warp % 2 * WN;
    const unsigned a_of = (row + row_of(g)) * 128 + (t ^ row_of(g)) * 16;
    const unsigned b_of = A_BYTES + column / 16 * BOX_BYTES + t * 256 + (g ^ (t * 2)) * 16;
    const unsigned next = 128 + ((g ^ (t * 2 + 1)) - (g ^ (t * 2))) * 16;

    for (int pair = blockIdx.x / 2; pair < pairs_of_tiles(M, N); pair += gridDim.x / 2) {
        double sum[DOWN][WIDE][4];
        #pragma unroll
        for (int i = 0; i < DOWN * WIDE * 4; ++i)
            sum[i / 4 / WIDE][i / 4 % WIDE][i % 4] = 0.0;
        Fragments of[2];
        unsigned b_at = ring.stage() + b_of;
        wait(ring.full(), ring.phase);
        fetch(of[0], ring.stage() + a_of, b_at, b_at + next);
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            b_at += 1024;
            fetch(of[1], (ring.stage() + a_of) ^ 64, b_at, b_at + next);
            multiply(sum, of[0]);
            const unsigned empty = ring.empty();  // once both its halves are in registers
            ring.next();
            if (k + BK < K)
                wait(ring.full(), ring.phase);
            arrive_in_both(empty);
            if (k + BK < K) {
                b_at = ring.stage() + b_of;
                fetch(of[0], ring.stage() + a_of, b_at, b_at + next);
            }
            multiply(sum, of[1]);
        }
        const Tile tile = tile_of(pair, M, N);
        write(sum, C, M, N, tile.row + row, tile.column + column + g * 2, t);
    }
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384, 1)
double_tma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const double *A, const double *B, double *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, 0);
    const bool has_maps = K % 2 == 0 && N % 2 == 0;
    ring.set_up(has_maps ? 1 : 128, A_map, B_map);
    divide_work<24, 240>(
        [&] {
            if (!has_maps)
                produce_by_hand(A, B, ring, M, N, K);
            else if (threadIdx.x == 0)
                produce(A_map, B_map, ring, M, N, K);
        },
        [&] { consume(ring, C, M, N, K); });
}
