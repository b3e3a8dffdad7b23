#include "hopper.cuh"

#ifndef BAND
#define BAND 8
#endif
#ifndef BM
#define BM 128
#endif
#include "eight-bit.cuh"

#define DRAFT (16 * 32 * 4)  // 16 rows and 32 columns of C
#define DRAFTS (BM / 16 * 2 * DRAFT)

#if BM == 128
#define OPERATION "m64n256k32.s32.s8.s8 {" NAMES_128 "}, %128, %129, add;\n"
#define SUMS SUMS_128("+r", 0)
#define FRESH "%130"
#else
#define OPERATION "m64n128k32.s32.s8.s8 {" NAMES_64 "}, %64, %65, add;\n"
#define SUMS SUMS_64("+r", 0)
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×BN, both in shared memory.
static __device__ __forceinline__ void multiply(int (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 "wgmma.mma_async.sync.aligned." OPERATION
                 "}" : SUMS : "l"(a), "l"(b), "r"((unsigned)fresh));
}

// Stores two adjacent sums of a row to a draft: the index of each 16 bytes is XORed with the row's
// index modulo 8.
static __device__ __forceinline__ void store(unsigned draft, int row, int column, int left,
                                             int right)
{
    const unsigned to = draft + row * 128 + (column * 4 ^ row % 8 * 16);
    asm volatile("st.shared.v2.s32 [%0], {%1, %2};" :: "r"(to), "r"(left), "r"(right) : "memory");
}

static __device__ __forceinline__ void consume(const CUtensorMap &C_map, Ring ring,
                                               int *C, int M, int N, int K)
{
    // The shuffle tells the compiler that all lanes have one value: descriptors are computed once.
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) - 4, lane = threadIdx.x % 32;
    const unsigned drafts = ring.start + STAGES * STAGE + warp * 2 * DRAFT;
    for (int i = blockIdx.x / BLOCKS; i < pairs_of_tiles(M, N); i += gridDim.x / BLOCKS) {
        int sum[BN / 2];
        unsigned before = 0;  // the barrier of the stage whose products are in flight
        #pragma unroll 1
        for (int k = 0; k < K; k += BK) {
            const uint64_t a = rows_at(ring.stage() + warp / 4 * 64 * BK);
            const uint64_t b = rows_at(ring.stage() + A_BYTES);
            wait(ring.full(), ring.phase);
            begin_products();
            #pragma unroll
            for (int j = 0; j < BK / 32; ++j)
                multiply(sum, a + j * (32 >> 4), b + j * (32 >> 4), k == 0 && j == 0);
            end_products();

            // The previous step is done: its stage may be filled again.
            wait_for_products<1>(sum);
            if (k > 0)
                report(before);
            before = ring.empty();
            ring.next();
        }
        wait_for_products<0>(sum);
        report(before);

        // 32 columns at a time: to shared memory, swizzled, then by the copy engine to C.
        const Tile tile = tile_of(i, M, N);
        const int row = tile.row + warp * 16;
        #pragma unroll
        for (int part = 0; part < BN / 32; ++part) {
            const unsigned draft = drafts + part % 2 * DRAFT;
            const int column = tile.column + part * 32;
            if (lane == 0)
                wait_until_read<1>();
            __syncwarp();
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                // Odd rows start with other columns than even rows, so that banks differ.
                const int *const even = &sum[part * 16 + j * 2], *const odd = &sum[part * 16 + (j ^ 4) * 2];
                const bool is_odd = lane / 4 % 2;
                const int left = is_odd ? odd[0] : even[0], right = is_odd ? odd[1] : even[1];
                const int r = j % 2 * 8 + lane / 4, c = (j / 2 ^ is_odd * 2) * 8 + lane % 4 * 2;
                store(draft, r, c, left, right);
                if (N % 4 != 0 && row + r < M && column + c < N)
                    C[(size_t)(row + r) * N + column + c] = left;
                if (N % 4 != 0 && row + r < M && column + c + 1 < N)
                    C[(size_t)(row + r) * N + column + c + 1] = right;
            }
            publish_stores();
            __syncwarp();
            if (lane == 0 && N % 4 == 0)
                deliver(C_map, draft, column, row);
        }
    }
    // The copy engine reads shared memory, which is freed when the block exits.
    wait_until_read<0>();
}

extern "C" __global__ void __cluster_dims__(BLOCKS) __launch_bounds__(128 + 2 * BM, 1)
int8_wgmma(const CUtensorMap __grid_constant__ A_map, const CUtensorMap __grid_constant__ B_map,
          const CUtensorMap __grid_constant__ C_map, const signed char *A,
          const signed char *B, int *C, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring((unsigned)__cvta_generic_to_shared(shared), DRAFTS);
    ring.set_up(K % 16 == 0 ? 1 : 128);
    if (threadIdx.x >= 128)
        consume(C_map, ring, C, M, N, K);
    else if (K % 16 != 0)
        produce_by_hand(A, B, shared, ring, M, N, K);
    else if (threadIdx.x == 0)
        produce(A_map, B_map, ring, M, N, K);
}
