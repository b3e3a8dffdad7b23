// What several rungs need, in the order in which the ladder meets it; each section names the first
// rung that needs it. Where the edge of a matrix cuts a tile, a function of its own handles it.
#pragma once

// -- Four floats at a time (vectorized) -----------------------------------------------------------

// Four floats of a row at `start`, where the row may end, or does not start at 16 bytes.
static __device__ __forceinline__ __attribute__((unused)) float4
load4_at_edge(const float *row, int start, int end)
{
    return make_float4(start + 0 < end ? row[start + 0] : 0.0f,
                       start + 1 < end ? row[start + 1] : 0.0f,
                       start + 2 < end ? row[start + 2] : 0.0f,
                       start + 3 < end ? row[start + 3] : 0.0f);
}

static __device__ __forceinline__ __attribute__((unused)) void
store4_at_edge(float *row, int start, int end, float4 value)
{
    if (start + 0 < end) row[start + 0] = value.x;
    if (start + 1 < end) row[start + 1] = value.y;
    if (start + 2 < end) row[start + 2] = value.z;
    if (start + 3 < end) row[start + 3] = value.w;
}

// Loads four floats of a row at `start`; zeros from `end` on.
static __device__ __forceinline__ __attribute__((unused)) float4
load4(const float *row, int start, int end, int aligned)
{
    if (aligned && start < end)
        return *(const float4 *)(row + start);
    return load4_at_edge(row, start, end);
}

// Stores four floats of a row at `start`; nothing from `end` on.
static __device__ __forceinline__ __attribute__((unused)) void
store4(float *row, int start, int end, int aligned, float4 value)
{
    if (aligned && start < end)
        *(float4 *)(row + start) = value;
    else
        store4_at_edge(row, start, end, value);
}

#ifdef __CUDACC__  // from here on C++ for CUDA alone

// -- Copies that bypass the registers (async-copied) ----------------------------------------------

// Starts to copy 4 or 16 bytes to shared memory; writes zeros if not `wanted`.
template <int Bytes>
__device__ __forceinline__ void copy(unsigned to, const float *from, bool wanted)
{
    const int bytes = wanted ? Bytes : 0;
    if (Bytes == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

template <int Bytes>
__device__ __forceinline__ void copy(float *to, const float *from, bool wanted)
{
    copy<Bytes>((unsigned)__cvta_generic_to_shared(to), from, wanted);
}

// Starts to copy four floats of a row at `start`; writes zeros from `end` on.
__device__ __forceinline__ void copy4(float4 *to, const float *row, int start, int end, int aligned)
{
    if (aligned)
        copy<16>((float *)to, row + start, start < end);
    else
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            copy<4>((float *)to + i, row + start + i, start + i < end);
}

// Waits for all copies that this thread has started.
__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// -- A ring of stages (multistage) ----------------------------------------------------------------

// The copies since the last call form a group.
__device__ __forceinline__ void end_of_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most Others of this thread's groups, the newest, are in flight.
template <int Others>
__device__ __forceinline__ void wait_for_groups()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(Others) : "memory");
}

// The same, but of every thread's groups.
template <int Others>
__device__ __forceinline__ void wait_for_all_groups()
{
    wait_for_groups<Others>();
    __syncthreads();
}

// -- Groups of four values (warp-tiled) -----------------------------------------------------------

// Fetches Count values, in groups of four that lie 4 × Lanes floats apart.
template <int Lanes, int Count>
__device__ __forceinline__ void fetch(float (&values)[Count], const float *from)
{
    #pragma unroll
    for (int i = 0; i < Count; i += 4) {
        const float4 four = *(const float4 *)(from + i * Lanes);
        values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
    }
}

// Stores a thread's sums, which start at this row and column of C, in groups of 4×4 that lie 4 ×
// Down rows and 4 × Across columns apart. Aligned: rows of C start at multiples of 16 bytes.
template <bool Aligned, int Down, int Across, int Rows, int Columns>
__device__ __forceinline__ void store_sums(float *C, const float (&sum)[Rows][Columns],
                                           int first_row, int first_column, int M, int N)
{
    #pragma unroll
    for (int i = 0; i < Rows; ++i) {
        const int row = first_row + i / 4 * 4 * Down + i % 4;
        #pragma unroll
        for (int j = 0; j < Columns; j += 4) {
            const int column = first_column + j * Across;
            float *const to = C + (size_t)row * N + column;
            if (Aligned && row < M && column < N)
                *(float4 *)to = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            #pragma unroll
            for (int q = 0; q < 4; ++q)
                if (!Aligned && row < M && column + q < N)
                    to[q] = sum[i][j + q];
        }
    }
}

// -- Barriers in shared memory (warp-specialized) -------------------------------------------------

// A barrier counts arrivals in phases, from 0 on. When all of a phase have come, and all announced
// bytes, its next phase begins.
__device__ __forceinline__ void init_barrier(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// Arrives when all copies that this thread has started are done.
__device__ __forceinline__ void arrive_when_copied(unsigned barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(barrier) : "memory");
}

// Waits for the end of the barrier's even (0) or odd (1) phase. Of a new barrier the odd phase
// counts as over.
__device__ __forceinline__ void wait(unsigned barrier, unsigned phase)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"(barrier), "r"(phase) : "memory");
}

// Sets up a ring's barriers: `full` and `empty` have one per stage.
template <int Stages>
__device__ __forceinline__ void start_ring(unsigned full, unsigned empty, int producers,
                                           int consumers)
{
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < Stages; ++stage) {
            init_barrier(full + 8 * stage, producers);
            init_barrier(empty + 8 * stage, consumers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

// Waits for the first Threads threads of the block, all of which must call it (banked-sums).
template <int Threads>
__device__ __forceinline__ void synchronize_first()
{
    asm volatile("bar.sync 1, %0;" :: "n"(Threads) : "memory");
}

// -- A that is not transposed (untransposed) ------------------------------------------------------

// Copies a stage of 128 rows of A and 256 columns of B where rows do not start at multiples of 16
// bytes. Each of 128 threads copies one column of eight k in every 16th row, and two columns of B.
// The copies arrive at the barrier when they are done.
__device__ __forceinline__ void copy_boxes(const float *A, const float *B, int M, int N, int K,
                                           unsigned stage, unsigned barrier, int first_row,
                                           int first_column, int k)
{
    const int thread = threadIdx.x % 128, a_k = thread % 8, a_row = thread / 8;
    const unsigned a_to = stage + a_row * 32 + ((a_k / 4) ^ (a_row / 4 % 2)) * 16 + a_k % 4 * 4;
    const unsigned b_to = stage + 4 * 8 * 128 + thread * 4;
    const int row = first_row + a_row, column = first_column + thread;
    const float *a_from = A + (size_t)row * K + k + a_k;
    const float *b_from = B + (size_t)k * N + column;
    #pragma unroll
    for (int i = 0; i < 8; ++i, a_from += 16 * (size_t)K)
        copy<4>(a_to + i * 16 * 32, a_from, row + i * 16 < M && k + a_k < K);
    #pragma unroll
    for (int i = 0; i < 8; ++i, b_from += N) {
        copy<4>(b_to + i * 4 * 256, b_from, column < N && k + i < K);
        copy<4>(b_to + i * 4 * 256 + 512, b_from + 128, column + 128 < N && k + i < K);
    }
    arrive_when_copied(barrier);
}

__device__ __forceinline__ float4 load(unsigned from)
{
    float4 four;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w) : "r"(from));
    return four;
}

// Sixteen values of a row of B's tile, in groups of four that lie 16 floats apart.
__device__ __forceinline__ void load_row(float (&b)[16], unsigned from)
{
    #pragma unroll
    for (int j = 0; j < 16; j += 4) {
        const float4 four = load(from + 16 * j);
        b[j] = four.x, b[j + 1] = four.y, b[j + 2] = four.z, b[j + 3] = four.w;
    }
}

// -- The copy engine (copy-engine) ----------------------------------------------------------------

// Arrives, and announces the bytes that must arrive too.
__device__ __forceinline__ void arrive_and_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// True in one lane of a warp.
__device__ __forceinline__ bool is_elected()
{
    unsigned elected;
    asm volatile("{\n"
                 ".reg .pred elected;\n"
                 "elect.sync _|elected, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, elected;\n"
                 "}" : "=r"(elected));
    return elected;
}

#ifdef CUDA_VERSION  // <cuda.h> has the type of a tensor map
// Fetches a box of the matrix to shared memory; elements outside the matrix arrive as zeros.
__device__ __forceinline__ void fetch_box(unsigned to, const CUtensorMap &map, int column, int row,
                                          unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}
#endif

// -- Register banks (register-banks) --------------------------------------------------------------

// Where a lane's sums and factors are in a tile of 128×256. Eight warps divide it, lanes the warp's
// 64×64: 8 rows of 4 lanes, numbered as in warp-tiled. A lane has every eighth row, and four
// columns of every sixteen. The engine exchanges the halves of a row of A, four k each, in rows 4
// to 7 of every eight.
struct Consumer {
    int thread, lane, warp, across, down, m, n;
    float *draft;  // for eight rows of the warp's sums (register-banks)
    unsigned a_low, a_high, b;

    __device__ __forceinline__ Consumer(unsigned ring, unsigned a_bytes, char *drafts)
    {
        thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(0xffffffff, thread / 32, 0);
        across = lane % 2 + lane / 4 % 2 * 2, down = lane / 2 % 2 + lane / 8 * 2;
        m = warp / 4 * 64, n = warp % 4 * 64;
        draft = (float *)drafts + warp * (8 * 64);
        a_low = ring + (m + down) * 32 + down / 4 * 16;
        a_high = ring + (((m + down) * 32 + down / 4 * 16) ^ 16);
        b = ring + a_bytes + (n + across * 4) * 4;
    }
};

// Allows a kernel that waits for this one to start. There is none: what counts is that the compiler
// moves no instruction across it.
__device__ __forceinline__ void keep_order()
{
    asm volatile("griddepcontrol.launch_dependents;");
}

// Multiplies a column of A, one value of a[i] per row, with a row of B. Rows go back and forth, as
// in pipelined: a row begins with the value of B that the last one ended with, and reads one of A
// and a sum. For even k the value of A is in an even register, and the sum of an even column in an
// odd one. So rows turn at an even column for even k, and at an odd one for odd k: at one end two
// columns change places. After the last of four k a row's values of A are replaced by those at
// `a_next`.
__device__ __forceinline__ void multiply(float (&sum)[8][16], float4 (&a)[8], const float (&b)[16],
                                         int k, unsigned a_next)
{
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float four[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
        #pragma unroll
        for (int next = 0; next < 16; ++next) {
            const int turn = i % 2 == 0 ? next : 15 - next;
            const int j = (k % 2 == 0 ? turn >= 14 : turn < 2) ? turn ^ 1 : turn;
            sum[i][j] += four[k % 4] * b[j];
        }
        if (k % 4 == 3)
            a[i] = load(a_next + 256 * i);
    }
}

// Writes eight rows of 64 sums to C, or adds them to what is there. Sums lie in pairs, each in
// reverse order.
__device__ __forceinline__ void write_rows(const float *draft, float *C, int row, int column, int M,
                                           int N, bool adds)
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

// Writes a warp's 64×64 sums, of which a lane has rows `down`, `down` + 8, … and groups of four
// columns. Eight rows at a time go through shared memory, so that a warp writes 32 adjacent
// elements.
__device__ __forceinline__ void write_sums(const float (&sum)[8][16], float *draft, int down,
                                           int across, float *C, int row, int column, int M, int N,
                                           bool adds)
{
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        #pragma unroll
        for (int j = 0; j < 16; j += 4)
            *(float4 *)(draft + down * 64 + across * 4 + j * 4) =
                make_float4(sum[i][j + 1], sum[i][j], sum[i][j + 3], sum[i][j + 2]);
        __syncwarp();
        write_rows(draft, C, row + i * 8, column, M, N, adds);
        __syncwarp();
    }
}

// -- Tensor cores (tensor-cores) ------------------------------------------------------------------

// sum += a·b, 16×16 by 16×8 doubles, for a whole warp. Of lane 4 g + t, element p of `a` is in row
// g + p % 2 * 8 and column t + p / 2 * 4, element p of `b` in row t + p * 4 and column g, and
// element p of `sum` in row g + p / 2 * 8 and column 2 t + p % 2. Older cards take a quarter of it
// at a time.
__device__ __forceinline__ void multiply(double (&sum)[4], const double (&a)[8],
                                         const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]),
                   "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
    #pragma unroll
    for (int p = 0; p < 8; ++p)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                     "{%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[p % 2 * 2]), "+d"(sum[p % 2 * 2 + 1]) : "d"(a[p]), "d"(b[p / 2]));
#endif
}

// -- A ring of stages for tensor cores (tensor-stages) --------------------------------------------

// Makes the compiler recompute what depends on `value`, such as the distances between rows, instead
// of keeping it in registers that the loop needs for the sums.
__device__ __forceinline__ void work_out_anew(int &value) { asm volatile("" : "+r"(value)); }

// -- Fragments, 16 bytes at a time (tensor-fragments) ---------------------------------------------

// Converts a float. Left to itself the compiler converts late, when a product already waits for it.
__device__ __forceinline__ double wide(float value)
{
    double result;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(value));
    return result;
}

// Columns of A and rows of B may be numbered in any order, if it is the same, and so may columns of
// B and C. So a lane takes k = 4 t to 4 t + 3 in rows g and g + 8 of A,
struct OfA { float4 top, bottom; };

__device__ __forceinline__ void fetch(OfA &to, const float *from, int pitch)
{
    to.top = *(const float4 *)from;
    to.bottom = *(const float4 *)(from + 8 * pitch);
}

__device__ __forceinline__ void convert(double (&to)[8], const OfA &from)
{
    to[0] = wide(from.top.x), to[1] = wide(from.bottom.x);
    to[2] = wide(from.top.y), to[3] = wide(from.bottom.y);
    to[4] = wide(from.top.z), to[5] = wide(from.bottom.z);
    to[6] = wide(from.top.w), to[7] = wide(from.bottom.w);
}

// and columns 4 g to 4 g + 3 of the same k of B: what four fragments need, of which each has every
// fourth column.
struct OfB { float4 row[4]; };

__device__ __forceinline__ void fetch(OfB &to, const float *from, int pitch)
{
    #pragma unroll
    for (int p = 0; p < 4; ++p)
        to.row[p] = *(const float4 *)(from + p * pitch);
}

// The fragment of every fourth column, from the j-th on.
__device__ __forceinline__ void convert(double (&to)[4], const OfB &from, int j)
{
    #pragma unroll
    for (int p = 0; p < 4; ++p)
        to[p] = wide(j == 0 ? from.row[p].x : j == 1 ? from.row[p].y
                   : j == 2 ? from.row[p].z : from.row[p].w);
}

// Where A's element (row, k) and B's (k, column) are in a tile. A quarter of a warp fetches groups
// of four floats from two rows of A, or from rows 0, 4, 8 and 12 of B. The groups within a row are
// permuted so that the eight are in different banks.
__device__ __forceinline__ int place_in_a(int row, int k, int pitch)
{
    return row * pitch + (k ^ row % 2 * 16);
}

__device__ __forceinline__ int place_in_b(int k, int column, int pitch, int start)
{
    return start + k * pitch + (column ^ k / 4 % 4 * 8);
}

// Stores a warp's 32×32 sums of such fragments, rounded. Four fragments of B had every fourth of 32
// columns each, so a lane has eight neighbours. Count: floats at a time, 4 or 1.
template <int Count>
__device__ __forceinline__ void store_fragments(const double (&sum)[2][4][4], float *C, int t,
                                                int first_row, int first_column, int M, int N)
{
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = first_row + i * 8;
        #pragma unroll
        for (int q = 0; q < 2; ++q) {
            const int column = first_column + t * 8 + q * 4, half = i % 2 * 2 + q;
            const float4 four = make_float4((float)sum[i / 2][0][half], (float)sum[i / 2][1][half],
                                            (float)sum[i / 2][2][half], (float)sum[i / 2][3][half]);
            float *const to = C + (size_t)row * N + column;
            if (row < M && Count == 4 && column < N)
                *(float4 *)to = four;
            if (row < M && Count == 1) {
                if (column + 0 < N) to[0] = four.x;
                if (column + 1 < N) to[1] = four.y;
                if (column + 2 < N) to[2] = four.z;
                if (column + 3 < N) to[3] = four.w;
            }
        }
    }
}

#endif
