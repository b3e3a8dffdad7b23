// /// matbench
// name = "int8-wgmma"
// summary = "int8 in, int32 out: exact sums"
// group = "gallery"
// previous = "fp8-wgmma"
// requires = ["cuda", "sm_90a"]
// transpose = "NT"
// args = ["tensor_map(A, BM, 128)", "tensor_map(B, BM, 128)", "tensor_map(C, 16, 32)",
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

// Adds: integers. Sums are exact; C is int32, twice the bytes of bfloat16.
// Predicted: at most 1,640 TFLOP/s at n = 4096, at 1.98 GHz, if nothing happens while C is written:
//   64 µs for the products, and 20 µs for 67 MB at 3.35 TB/s.
// Measured: 255 TFLOP/s at n = 1024, 116% of cuBLASLt in int8 (H100)
//   1369 TFLOP/s at n = 4096, 100% of cuBLASLt in int8 (H100)
//
// A multiprocessor writes 22 bytes per cycle: 5,900 cycles for a tile of 128×256, 15% of its time
// at n = 4096. Sums cannot be packed as in fp8-wgmma, and there are registers for only half of
// them. So half of a tile is written at once, and the other half in the first steps of the next
// tile, while the tensor cores multiply.

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"

#define DRAFT (16 * 32 * 4)  // 16 rows and 32 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)
#define HELD (BN / 64)  // parts of a tile that are held: half of them

// Stores two adjacent sums of a row to a draft: the index of each 16 bytes is XORed with the row's
// index modulo 8.
static __device__ __forceinline__ void store(unsigned draft, int row, int column, int left,
                                             int right)
{
    const unsigned to = draft + row * 128 + (column * 4 ^ row % 8 * 16);
    asm volatile("st.shared.v2.s32 [%0], {%1, %2};" :: "r"(to), "r"(left), "r"(right) : "memory");
}

// Writes 16 rows and 32 columns of C, of which a lane has the sums c: through a draft, by the copy
// engine, or one by one if rows do not start at multiples of 16 bytes.
static __device__ __forceinline__ void write(const int *c, unsigned draft,
                                             const CUtensorMap &C_map, int *C, int row, int column,
                                             int M, int N)
{
    const int lane = threadIdx.x % 32;
    const bool is_odd = lane / 4 % 2;
    if (lane == 0)
        wait_until_read<1>();
    __syncwarp();
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        // Odd rows start with other columns than even rows, so that banks differ.
        const int *const even = c + j * 2, *const odd = c + (j ^ 4) * 2;
        const int left = is_odd ? odd[0] : even[0], right = is_odd ? odd[1] : even[1];
        const int r = j % 2 * 8 + lane / 4, n = (j / 2 ^ is_odd * 2) * 8 + lane % 4 * 2;
        store(draft, r, n, left, right);
        if (N % 4 != 0 && row + r < M && column + n < N)
            C[(size_t)(row + r) * N + column + n] = left;
        if (N % 4 != 0 && row + r < M && column + n + 1 < N)
            C[(size_t)(row + r) * N + column + n + 1] = right;
    }
    publish_stores();
    __syncwarp();
    if (lane == 0 && N % 4 == 0)
        deliver(C_map, draft, column, row);
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring, int *C, int M,
                                               int N, int K)
{
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4;
    const unsigned drafts = ring.start + STAGES * STAGE + warp * 2 * DRAFT;
    int held[HELD * 16];  // the last columns of a tile
    Tile tile = {};
    const auto write_part = [&](const int *c, int part) {
        write(c, drafts + part % 2 * DRAFT, C_map, C, tile.row + warp * 16, tile.column + part * 32,
              M, N);
    };
    consume<HELD, int>(
        ring, M, N, K,
        [&](const int (&sum)[BN / 2], Tile finished) {
            tile = finished;
            #pragma unroll
            for (int part = 0; part < BN / 32 - HELD; ++part)
                write_part(sum + part * 16, part);
            #pragma unroll
            for (int j = 0; j < HELD * 16; ++j)
                held[j] = sum[BN / 2 - HELD * 16 + j];
        },
        [&](int part) { write_part(held + part * 16, BN / 32 - HELD + part); });
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
int8_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
           const CUtensorMap __grid_constant__ C_map, const signed char *A,
           const signed char *B, int *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring((unsigned)__cvta_generic_to_shared(shared), DRAFTS);
    ring.set_up(K % 16 == 0 ? 1 : 128);

    // Registers move from the warpgroup that moves data to those that multiply.
    if (threadIdx.x < 128) {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
        if (K % 16 != 0)
            produce_by_hand(A, B, shared, ring, M, N, K);
        else if (threadIdx.x == 0)
            produce(A_map, B_map, ring, M, N, K);
    } else {
#if WARPGROUPS == 2
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#endif
        consume(C_map, ring, C, M, N, K);
    }
}
