// /// matbench
// name = "double-int8"
// summary = "float64 from int8 tensor cores: integers modulo 15 coprime numbers up to 256"
// group = "gallery"
// previous = "int8-wgmma"
// requires = ["cuda", "sm_90a"]
// entry = "host double_int8"
// precision = "float64"
// arithmetic = "15 int8"
// exponents = [-8, 8]
// args = ["A", "B", "C", "workspace", "M", "N", "K"]
// [sweep]
// MODULI = [15]
// [launch]
// where = ["K <= 65536", "max_shared_bytes_per_block >= 197696"]
// workspace_bytes = """(32768 * MODULI * (ceil_div(M, 256) + ceil_div(N, 256)) * ceil_div(K, 128)
//     + 65536 * MODULI * ceil_div(M, 256) * ceil_div(N, 256)
//     + 2048 * (ceil_div(M, 256) + ceil_div(N, 256) * (1 + ceil_div(K, 512))))"""
// ///

// Adds: exact products of 60-bit integers from int8 products. Doubles become integers, and these
//   their residues modulo 15 small numbers; an int8 product for each gives the residues of C.
// Predicted: 81 TFLOP/s at n = 8192: 15 products at 1,400 TOPS, if power allows that, take 11.8 ms,
//   and 5.2 GB of residues and doubles besides 1.8 ms at 2.9 TB/s.
// Measured: 77.9 TFLOP/s at n = 4096, 127% of cuBLAS in float64 (H100)
//   91.3 TFLOP/s at n = 8192, 150% of cuBLAS in float64 (H100)
//
// This is Ozaki scheme II (K. Ozaki, Y. Uchino and T. Imamura, arXiv 2504.08009; made fast by the
// same, arXiv 2508.03984). The first scheme cuts numbers into slices of bits (H. Ootomo, K. Ozaki
// and R. Yokota, arXiv 2306.11975) and needs a product for each pair of slices. Residues need one
// for each modulus:
//
//     a, b  →  integers: each row of A and column of B times a power of two, rounded
//           →  residues modulo m = 256, 255, 253, …, 197
//           →  15 products with sums of 32 bits, which are exact, and their residues modulo m
//           →  Σ a·b, if it is less than half of P, the product of all m: 2¹¹⁷·⁸
//
// SCALING. By the inequality of Cauchy and Schwarz a sum is at most ‖a‖·‖b‖. So each row and column
// is scaled to a norm from 2⁵⁷·⁴ to 2⁵⁸·⁴, whatever K is. Only rounding to integers, and the
// result to a double, makes errors.
//
// PRECISION. A number keeps all of its 53 bits if it is at least a 40th of the norm of its row or
// column, and one bit less for each factor of two below that: at K = 8192, numbers of equal size
// lose one or two. That is less than the sums of float64 lose, which are rounded after each term.
// But where the numbers of a row or column span a wide range, small ones lose more: hence
// `exponents`. With 14 moduli errors are 14 times as large, which shows in short sums.
//
// BYTES. The residue of a number of 64 bits is that of the sum of its bytes times 256^b mod m: two
// instructions (dp4a), and a division by multiplication. The bytes of A are also multiplied by
// (P/m)⁻¹, so that products modulo m are the digits from which the Chinese remainder theorem makes
// the result, by dp4a again.
//
// ONE PRODUCT. multiply_residues treats all moduli as one tall product: A's residues for a modulus lie
// below those for the one before. It is int8-wgmma, but writes one byte where that writes four, in
// the order in which a lane holds its sums. Half of a tile's sums stay in registers and are written
// during the first steps of the next tile.

#ifndef MODULI
#define MODULI 15
#endif
#define BM 128
#define BAND 8
#include "eight-bit.cuh"
#include "residues.cuh"

#define CHUNK 512        // terms that a block adds up for the norms of columns
#define HELD (BN / 64)   // parts of a tile that are held: half of them
#define SHARED (STAGES * STAGE_BYTES + 16 * STAGES + 1024)

// -- Scaling -------------------------------------------------------------------------------------

// The power of two that makes a row or column as long as it may be, and its inverse; NaN if its
// squares have no finite sum.
struct Scale { double factor, inverse; };

static __device__ __forceinline__ Scale scale_of(double squares, double largest)
{
    if (!isfinite(squares))
        return {0.0, nan("")};
    if (squares == 0.0)
        return {1.0, 1.0};
    const int power = max(-900, min(900, ilogb(largest / squares) >> 1));
    return {scalbn(1.0, power), scalbn(1.0, -power)};
}

// Scaled and rounded to an integer, with 2⁶³ added.
static __device__ __forceinline__ uint64_t to_integer(double x, double factor)
{
    return (uint64_t)__double2ll_rn(x * factor) ^ (uint64_t)1 << 63;
}

// Four bytes as a word.
static __device__ __forceinline__ unsigned packed(const unsigned (&byte)[4])
{
    return __byte_perm(__byte_perm(byte[0], byte[1], 0x0040),
                       __byte_perm(byte[2], byte[3], 0x0040), 0x5410);
}

// Writes the residues of four terms of a row: a word in the matrix of each modulus.
template <bool IS_A>
static __device__ __forceinline__ void write_residues(const uint64_t (&x)[4], unsigned *to,
                                                      size_t stride)
{
    #pragma unroll
    for (int i = 0; i < MODULI; ++i, to += stride) {
        const Modulus &modulus = moduli.of[i];
        unsigned r[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            r[j] = residue(x[j], IS_A ? modulus.of_A : modulus.of_B, modulus);
        *to = packed(r) ^ 0x80808080;
    }
}

// Adds up a number of each of a block's 256 threads; all get the same.
static __device__ __forceinline__ double sum_of_block(double x)
{
    __shared__ double of_warp[8];
    #pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xffffffff, x, distance);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0.0;
    #pragma unroll
    for (int warp = 0; warp < 8; ++warp)
        x += of_warp[warp];
    return x;
}

// A block for each row of A: its norm, then its residues. The second pass hits the L2 cache.
static __global__ void __launch_bounds__(256)
residues_of_A(const double *A, unsigned *to, double *inverse, int K, int words, size_t stride,
              double largest)
{
    A += (size_t)blockIdx.x * K;
    to += (size_t)blockIdx.x * words;
    double squares = 0.0;
    #pragma unroll 8
    for (int k = threadIdx.x; k < K; k += 256)
        squares += A[k] * A[k];
    const Scale scale = scale_of(sum_of_block(squares), largest);
    if (threadIdx.x == 0)
        inverse[blockIdx.x] = scale.inverse;
    for (int word = threadIdx.x; word < words; word += 256) {
        uint64_t x[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            x[j] = to_integer(word * 4 + j < K ? A[word * 4 + j] : 0.0, scale.factor);
        write_residues<true>(x, to + word, stride);
    }
}

// Adds up the squares of CHUNK terms of 64 columns of B.
static __global__ void __launch_bounds__(256)
squares_of_B(const double *B, double *squares, int N, int K)
{
    __shared__ double of_row[4][64];
    const int column = blockIdx.x * 64 + threadIdx.x % 64, row = threadIdx.x / 64;
    const int end = min(K, (int)(blockIdx.y + 1) * CHUNK);
    double sum = 0.0;
    if (column < N)
        #pragma unroll 8
        for (int k = blockIdx.y * CHUNK + row; k < end; k += 4) {
            const double x = B[(size_t)k * N + column];
            sum += x * x;
        }
    of_row[row][threadIdx.x % 64] = sum;
    __syncthreads();
    if (row == 0 && column < N)
        squares[(size_t)blockIdx.y * N + column] = (sum + of_row[1][threadIdx.x])
            + (of_row[2][threadIdx.x] + of_row[3][threadIdx.x]);
}

// The residues of 128 terms of 32 columns of B: transposed, terms run fastest.
static __global__ void __launch_bounds__(256)
residues_of_B(const double *B, const double *squares, unsigned *to, double *inverse, int N, int K,
              int words, size_t stride, double largest)
{
    // One double of padding after every four rows, so that lanes use different banks.
    __shared__ double tile[128 * 32 + 32];
    __shared__ double factor[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.y * 128;
    const int column = blockIdx.x * 32 + lane;
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int row = i * 8 + warp;
        tile[row * 32 + row / 4 + lane]
            = k + row < K && column < N ? B[(size_t)(k + row) * N + column] : 0.0;
    }
    if (warp == 0 && column < N) {
        double sum = 0.0;
        for (int chunk = 0; chunk * CHUNK < K; ++chunk)
            sum += squares[(size_t)chunk * N + column];
        const Scale scale = scale_of(sum, largest);
        factor[lane] = scale.factor;
        if (k == 0)
            inverse[column] = scale.inverse;
    }
    __syncthreads();
    for (int i = warp; i < 32 && blockIdx.x * 32 + i < N; i += 8) {
        uint64_t x[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            x[j] = to_integer(tile[(lane * 4 + j) * 32 + lane + i], factor[i]);
        write_residues<false>(x, to + (size_t)(blockIdx.x * 32 + i) * words + k / 4 + lane, stride);
    }
}

// -- Products ------------------------------------------------------------------------------------

// Where a thread's digits go, and the constants that reduce its sums modulo m.
struct Target { uint4 *to; unsigned minus, fine_inverse, offset; };

// Writes 16 of a lane's sums as digits, four to a word.
static __device__ __forceinline__ void write_digits(const int *sum, const Target &target, int part)
{
    unsigned word[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        unsigned r[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            r[j] = residue(sum[i * 4 + j], target.minus, target.fine_inverse, target.offset);
        word[i] = packed(r);
    }
    target.to[part * 256] = make_uint4(word[0], word[1], word[2], word[3]);
}

static __device__ __forceinline__ void consume(Ring ring, char *digits, int rows, int M, int N,
                                               int K)
{
    int held[HELD * 16];  // the last columns of a tile
    Target target = {};
    multiply_tiles<HELD, int>(
        ring, rows, N, K, multiply_stage<int>,
        [&](const int (&sum)[BN / 2], Tile tile) {
            const Modulus &modulus = moduli.of[tile.row / M];
            const size_t place = (size_t)(tile.row / BM) * (N / BN) + tile.column / BN;
            target = {(uint4 *)(digits + place * (BM * BN)) + threadIdx.x - 128, modulus.minus,
                      modulus.fine_inverse, modulus.offset};
            #pragma unroll
            for (int part = 0; part < BN / 32 - HELD; ++part)
                write_digits(sum + part * 16, target, part);
            #pragma unroll
            for (int j = 0; j < HELD * 16; ++j)
                held[j] = sum[BN / 2 - HELD * 16 + j];
        },
        [&](int part) { write_digits(held + part * 16, target, BN / 32 - HELD + part); });
}

// All moduli in one launch, as one product: the residues of A for each lie below those for the one
// before. M, N and K are multiples of 256, 256 and 128.
static __global__ void __cluster_dims__(2) __launch_bounds__(128 + 2 * BM, 1)
multiply_residues(const CUtensorMap __grid_constant__ A_map,
                  const CUtensorMap __grid_constant__ B_map, char *digits, int M, int N, int K)
{
    extern __shared__ char shared[];
    const Ring ring(shared, 0);
    ring.set_up(1);
    const int rows = MODULI * M, lower = blockIdx.x % 2;
    divide_work<40, 232>(
        [&] {
            if (threadIdx.x == 0)
                fill_stages(ring, rows, N, K, [&](unsigned stage, unsigned full, Tile tile, int k) {
                    arrive_and_expect(full, STAGE_BYTES);
                    fetch(stage, A_map, k, tile.row, full);
                    fetch_for(3, stage + A_BYTES + lower * (BM * BK), B_map, k,
                              tile.row / M * N + tile.column + lower * BM, full);
                });
        },
        [&] { consume(ring, digits, rows, M, N, K); });
}

// -- Back ----------------------------------------------------------------------------------------

// Exchanges rows and columns of 4×4 bytes.
static __device__ __forceinline__ void transpose(unsigned (&row)[4])
{
    const unsigned upper_left = __byte_perm(row[0], row[1], 0x5140);
    const unsigned upper_right = __byte_perm(row[0], row[1], 0x7362);
    const unsigned lower_left = __byte_perm(row[2], row[3], 0x5140);
    const unsigned lower_right = __byte_perm(row[2], row[3], 0x7362);
    row[0] = __byte_perm(upper_left, lower_left, 0x5410);
    row[1] = __byte_perm(upper_left, lower_left, 0x7632);
    row[2] = __byte_perm(upper_right, lower_right, 0x5410);
    row[3] = __byte_perm(upper_right, lower_right, 0x7632);
}

// Each thread: four elements of C, from one word of digits for each modulus.
static __global__ void __launch_bounds__(256)
write_C(const unsigned *digits, const double *inverse_A, const double *inverse_B, double *C, int M,
        int N, int across, size_t stride)
{
    const size_t word = (size_t)blockIdx.x * 256 + threadIdx.x;
    unsigned digit[FOURS][4];  // of four moduli and four numbers
    #pragma unroll
    for (int i = 0; i < FOURS * 4; ++i)
        digit[i / 4][i % 4] = i < MODULI ? __ldg(digits + i * stride + word) : 0;
    #pragma unroll
    for (int i = 0; i < FOURS; ++i)
        transpose(digit[i]);

    // Which thread of multiply_residues wrote the word. It holds two columns in each of two rows.
    const int tile = word / (BM * BN / 4), thread = word / 4 % 256;
    const int group = word / 1024 % (BN / 32) * 4 + word % 4;
    const int row = tile / across * BM + thread / 32 * 16 + thread % 32 / 4;
    const int column = tile % across * BN + group * 8 + thread % 4 * 2;
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
        double x[2];
        #pragma unroll
        for (int j = 0; j < 2; ++j) {
            unsigned own[FOURS];
            #pragma unroll
            for (int i = 0; i < FOURS; ++i)
                own[i] = digit[i][half * 2 + j];
            x[j] = from_digits(own);
        }
        const int r = row + half * 8;
        if (r >= M || column >= N)
            continue;
        double *const to = C + (size_t)r * N + column;
        const double left = x[0] * inverse_A[r] * inverse_B[column];
        if (N % 2 == 0)
            *(double2 *)to = make_double2(left, x[1] * inverse_A[r] * inverse_B[column + 1]);
        else {
            to[0] = left;
            if (column + 1 < N)
                to[1] = x[1] * inverse_A[r] * inverse_B[column + 1];
        }
    }
}

// -- On the host ---------------------------------------------------------------------------------

// Describes a matrix of bytes for the copy engine, which fetches 128×128 of them.
static cudaError_t describe(CUtensorMap &map, char *matrix, uint64_t rows, uint64_t columns)
{
    void *encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode,
                                                              12000, cudaEnableDefault, &found);
    if (code != cudaSuccess || encode == nullptr)
        return code != cudaSuccess ? code : cudaErrorNotSupported;
    const cuuint64_t sizes[] = {columns, rows}, pitch[] = {columns};
    const cuuint32_t box[] = {BK, 128}, steps[] = {1, 1};
    const CUresult made = ((decltype(&cuTensorMapEncodeTiled))encode)(
        &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, matrix, sizes, pitch, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return made == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t double_int8(const double *A, const double *B, double *C, void *workspace, int M, int N,
                        int K, cudaStream_t stream)
{
    // Matrices of residues and of digits are padded to whole tiles.
    const size_t rows = (M + 255) / 256 * 256, columns = (N + 255) / 256 * 256;
    const size_t terms = (K + 127) / 128 * 128;
    char *const of_A = (char *)workspace, *const of_B = of_A + MODULI * rows * terms;
    char *const digits = of_B + MODULI * columns * terms;
    double *const inverse_A = (double *)(digits + MODULI * rows * columns);
    double *const inverse_B = inverse_A + rows, *const squares = inverse_B + columns;

    CUtensorMap A_map, B_map;
    cudaError_t code = describe(A_map, of_A, MODULI * rows, terms);
    if (code == cudaSuccess)
        code = describe(B_map, of_B, MODULI * columns, terms);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(multiply_residues, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    SHARED);
    int device, multiprocessors;
    if (code == cudaSuccess)
        code = cudaGetDevice(&device);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (code != cudaSuccess)
        return code;

    const int pairs = MODULI * (rows / 256) * (columns / 256);  // of tiles
    const int blocks = 2 * min(multiprocessors / 2, pairs);
    const double largest = largest_square();
    const dim3 chunks((N + 63) / 64, (K + CHUNK - 1) / CHUNK), parts((N + 31) / 32, terms / 128);
    const size_t words = terms / 4;
    residues_of_A<<<M, 256, 0, stream>>>(A, (unsigned *)of_A, inverse_A, K, words, rows * words,
                                         largest);
    squares_of_B<<<chunks, 256, 0, stream>>>(B, squares, N, K);
    residues_of_B<<<parts, 256, 0, stream>>>(B, squares, (unsigned *)of_B, inverse_B, N, K, words,
                                             columns * words, largest);
    multiply_residues<<<blocks, 128 + 2 * BM, SHARED, stream>>>(A_map, B_map, digits, rows, columns,
                                                                terms);
    write_C<<<rows * columns / 1024, 256, 0, stream>>>((const unsigned *)digits, inverse_A,
                                                       inverse_B, C, M, N, columns / BN,
                                                       rows * columns / 4);
    return cudaGetLastError();
}
