// Makes new inputs for every timed launch, and verifies its result.
//
// Inputs are derived from uploaded ones by changes that are exact in floating point and whose
// effect on the result is known: rows, columns and terms are permuted, change signs and are
// multiplied by powers of two. All randomness follows from a key, new for each launch, so that the
// comparison can repeat it.

#define THREADS 256
#define CHUNK 1024

// The storage type of an input's numbers.
#ifndef FLOAT16
#define FLOAT16 0
#endif
#ifndef BFLOAT16
#define BFLOAT16 0
#endif
#ifndef FLOAT64
#define FLOAT64 0
#endif
#ifndef E4M3
#define E4M3 0
#endif
#ifndef E5M2
#define E5M2 0
#endif
#ifndef INT8
#define INT8 0
#endif
#if E4M3 || E5M2 || INT8
typedef unsigned char word;
typedef float number;
#elif FLOAT16 || BFLOAT16
typedef unsigned short word;
typedef float number;
#elif FLOAT64
typedef size_t word;
typedef double number;
#else
typedef unsigned word;
typedef float number;
#endif

// An 8-bit floating-point number has FRACTION_BITS bits of fraction; its exponent is BIAS too large.
#if E4M3 || E5M2
#define FRACTION_BITS (E4M3 ? 3 : 2)
#define BIAS (E4M3 ? 7 : 15)

static __device__ float power_of_two(int exponent)
{
    return __uint_as_float((unsigned)(exponent + 127) << 23);
}
#endif

static __device__ number value_of(word bits)
{
#if INT8
    return (float)(signed char)bits;
#elif E4M3 || E5M2
    const int exponent = bits >> FRACTION_BITS & ((1 << (7 - FRACTION_BITS)) - 1);
    const int fraction = bits & ((1 << FRACTION_BITS) - 1);
    const int whole = exponent ? fraction + (1 << FRACTION_BITS) : fraction;
    const int scale = (exponent ? exponent : 1) - BIAS - FRACTION_BITS;
    return (bits & 128 ? -1.0f : 1.0f) * (float)whole * power_of_two(scale);
#elif FLOAT64
    return __longlong_as_double(bits);
#elif FLOAT16
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#elif BFLOAT16
    return __uint_as_float((unsigned)bits << 16);
#else
    return __uint_as_float(bits);
#endif
}

// Exact: changes of inputs need no rounding.
static __device__ word word_of(number value)
{
#if INT8
    return (word)(signed char)value;
#elif E4M3 || E5M2
    const unsigned bits = __float_as_uint(value);
    const int exponent = (int)(bits >> 23 & 255) - 127 + BIAS;
    const unsigned sign = bits >> 31 << 7;
    if (exponent <= 0) // in units of the smallest number
        return (word)(sign | (unsigned)(fabsf(value) * power_of_two(BIAS + FRACTION_BITS - 1)));
    const unsigned fraction = bits >> (23 - FRACTION_BITS) & ((1u << FRACTION_BITS) - 1);
    return (word)(sign | (unsigned)exponent << FRACTION_BITS | fraction);
#elif FLOAT64
    return __double_as_longlong(value);
#elif FLOAT16
    word bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#elif BFLOAT16
    return (word)(__float_as_uint(value) >> 16);
#else
    return __float_as_uint(value);
#endif
}

// What a factor does to an element: of 8-bit inputs it changes only the sign, its power is in their
// scales.
static __device__ float of_element(float factor)
{
#if E4M3 || E5M2 || INT8
    return factor < 0 ? -1.0f : 1.0f;
#else
    return factor;
#endif
}

// +2^exponent or -2^exponent.
static __device__ float signed_power(int exponent, int negative)
{
    return __uint_as_float((unsigned)(exponent + 127) << 23 | (unsigned)negative << 31);
}

// Each block's number of wrong elements, the first of them, and the excess of all errors together,
// to be added up by `seal`. In two steps of 16: on a CPU each barrier costs more than the additions.
#define REPORT(partial, wrong, first, excess)                                  \
    __shared__ size_t counts[THREADS];                                         \
    __shared__ size_t firsts[THREADS];                                         \
    __shared__ double excesses[THREADS];                                       \
    counts[threadIdx.x] = wrong;                                               \
    firsts[threadIdx.x] = first;                                               \
    excesses[threadIdx.x] = excess;                                            \
    for (int left = THREADS / 16; left > 0; left /= 16) {                      \
        __syncthreads();                                                       \
        if (threadIdx.x < left)                                                \
            for (int i = threadIdx.x + left; i < 16 * left; i += left) {       \
                counts[threadIdx.x] += counts[i];                              \
                excesses[threadIdx.x] += excesses[i];                          \
                if (firsts[i] < firsts[threadIdx.x])                           \
                    firsts[threadIdx.x] = firsts[i];                           \
            }                                                                  \
    }                                                                          \
    if (threadIdx.x == 0) {                                                    \
        partial[3 * (size_t)blockIdx.x] = counts[0];                           \
        partial[3 * (size_t)blockIdx.x + 1] = firsts[0];                       \
        partial[3 * (size_t)blockIdx.x + 2] = __double_as_longlong(excesses[0]); \
    }

#define NONE ((size_t)-1)

// No bound, and the largest error of many in units of their root mean square.
#define FAR 1e200
#define LARGEST 16

// Stores the verdict on one launch, masked by a key that is used once: a later kernel can neither
// read it nor forge another. All elements are wrong if only their errors together are too large.
extern "C" __global__ void seal(const size_t *partial, int blocks, size_t key, size_t *sealed,
                                size_t place, size_t elements, double most_excess)
{
    __shared__ size_t total[3];
    size_t wrong = 0, first = NONE;
    double excess = 0;
    for (int b = threadIdx.x; b < blocks; b += THREADS) {
        wrong += partial[3 * (size_t)b];
        if (partial[3 * (size_t)b + 1] < first) first = partial[3 * (size_t)b + 1];
        excess += __longlong_as_double(partial[3 * (size_t)b + 2]);
    }
    REPORT(total, wrong, first, excess)
    if (threadIdx.x == 0) {
        if (total[0] == 0 && !(__longlong_as_double(total[2]) <= most_excess)) total[0] = elements;
        sealed[3 * place] = total[0] ^ drawn(key, 0);
        sealed[3 * place + 1] = total[1] ^ drawn(key, 1);
        sealed[3 * place + 2] = drawn(drawn(key, total[0]), total[1]);
    }
}

// Counts the overwritten words of the guards around a matrix, and restores them. The matrix of
// `words` words is between two guards of `guard` words each.
extern "C" __global__ void guards_changed(word *raw, size_t guard, size_t words, unsigned value,
                                          size_t *partial)
{
    word *before = raw, *after = raw + guard + words;
    size_t wrong = 0;
    for (STRIDED(i, guard)) // without stores, which a CPU's compiler would not vectorise
        wrong += (before[i] != (word)value) + (after[i] != (word)value);
    if (wrong)
        for (STRIDED(i, guard)) before[i] = after[i] = (word)value;
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

// Counts the overwritten words between lines of `width` words, which begin `pitch` words apart, and
// restores them.
extern "C" __global__ void between_changed(word *words, size_t count, size_t width, size_t pitch,
                                           unsigned value, size_t *partial)
{
    size_t wrong = 0;
    for (STRIDED(i, count))
        if (i % pitch >= width && words[i] != (word)value) {
            words[i] = (word)value;
            ++wrong;
        }
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

// -- the matrix product --------------------------------------------------------------------------

// A permutation of 0 … count - 1: a Feistel network of four rounds over the next power of four,
// repeated until the result is in range.
static __device__ int permuted(size_t key, int index, int count)
{
    int half_bits = 1;
    while (((size_t)1 << 2 * half_bits) < (size_t)count) ++half_bits;
    const size_t low = ((size_t)1 << half_bits) - 1;
    size_t place = index;
    do {
        size_t left = place >> half_bits, right = place & low;
        for (int round = 0; round < 4; ++round) {
            const size_t next = left ^ (drawn(key + round, right) & low);
            left = right;
            right = next;
        }
        place = left << half_bits | right;
    } while (place >= (size_t)count);
    return (int)place;
}

static __device__ int between(size_t bits, int low, int high)
{
    return low + (int)(bits % (size_t)(high - low + 1));
}

// The term that row or column `index` selects; -1 for most, which select none.
static __device__ int selected(size_t key, int index, int count, int K)
{
    const int some = count >= 32 ? 4 : count >= 8 ? 1 : (int)(drawn(key, 9) % 2);
    int term = -1;
    for (int s = 0; s < some; ++s)
        if (drawn(key, 10 + 2 * s) % (size_t)count == (size_t)index)
            term = (int)(drawn(key, 11 + 2 * s) % (size_t)K);
    return term;
}

// In a sparse row, SPARSE_TERMS terms are as in any row, and all others REST (2^-30) of
// that.
#define SPARSE_ROWS 2
#define SPARSE_TERMS 32
#define REST (1.0f / 1073741824.0f)

// Row `index` as a sparse one, -2 for the first, -3 for the second; -1 for most, which are none.
static __device__ int sparse(size_t key, int index, int M)
{
    const int some = M >= 32 ? 2 : M >= 8 ? 1 : (int)(drawn(key, 19) % 2);
    int row = -1;
    for (int r = 0; r < some; ++r)
        if (drawn(key, 20 + r) % (size_t)M == (size_t)index) row = -2 - r;
    return row;
}

// The share of term k that a row has which selects `only`.
static __device__ float share(const int *places, int only, int k, int K)
{
    if (only >= -1) return 1.0f;
    const int s = k / (K / SPARSE_TERMS);
    return s < SPARSE_TERMS && places[SPARSE_TERMS * (-2 - only) + s] == k ? 1.0f : REST;
}

// The same for whole groups, and within each of them. A last, smaller one stays last.
static __device__ int permuted_in_groups(size_t key, int index, int count, int group)
{
    if (group == 1 || group >= count) return permuted(key, index, count);
    const int whole = count / group, place = index / group;
    const int origin = place < whole ? permuted(key, place, whole) : place;
    const int size = place < whole ? group : count - whole * group;
    return origin * group + permuted(mixed(key + place), index % group, size);
}

// The scale of an element, of a matrix of that many columns whose rows and columns have scales in
// common; 1 if there are none.
static __device__ double scale_at(const float *scales, int scaled, size_t row, size_t column,
                                  int scaled_rows, int scaled_columns, int columns)
{
    if (!scaled) return 1.0;
    return scales[row / scaled_rows * (((size_t)columns + scaled_columns - 1) / scaled_columns)
                  + column / scaled_columns];
}

// For M rows, then N columns, then K terms: the origin of each, its factor, and the single term
// that it selects; for sparse rows, in place of that, their number. Exponents of A and B grow by at
// most `up` or shrink by at most `down`; what has a scale in common has one power.
extern "C" __global__ void draw_order(size_t key, int M, int N, int K, int up, int down,
                                      int vary, int select, int sparse_rows, int scaled_rows,
                                      int scaled_columns, int scaled_terms, int *from,
                                      float *factor, int *selects, int *places)
{
    const size_t rows = mixed(key + 1), columns = mixed(key + 2), terms = mixed(key + 3);
    const int a_grows = drawn(key, 4) & 1;
    const int most = up < down ? up / 2 : down / 2;
    const int row_low = a_grows ? 0 : -(down - most), row_high = a_grows ? up - most : 0;
    const int column_low = a_grows ? -(down - most) : 0, column_high = a_grows ? 0 : up - most;
    for (STRIDED(i, (size_t)M + N + K)) {
        int index = (int)i, count = M, low = row_low, high = row_high, group = scaled_rows;
        size_t own = rows;
        if (i >= (size_t)M + N) {
            index -= M + N, count = K, own = terms, group = scaled_terms;
            low = a_grows ? 0 : -most, high = a_grows ? most : 0;
        } else if (i >= (size_t)M) {
            index -= M, count = N, own = columns, group = scaled_columns;
            low = column_low, high = column_high;
        }
        const size_t bits = drawn(own, (size_t)(index / group) * group + 100);
        const int negative = (int)(drawn(own, (size_t)index + 100) & 1);
        from[i] = vary ? permuted_in_groups(own, index, count, group) : index;
        factor[i] = vary ? signed_power(between(bits >> 1, low, high), negative) : 1.0f;
        if (i < (size_t)M + N)
            selects[i] = select ? selected(own, index, count, K) : -1;
        if (i < (size_t)M && sparse_rows && selects[i] < 0)
            selects[i] = sparse(own, index, M);
    }
    if (sparse_rows)
        for (STRIDED(i, SPARSE_ROWS * SPARSE_TERMS)) {
            const int width = K / SPARSE_TERMS;
            places[i] = (int)(i % SPARSE_TERMS) * width
                        + (int)(drawn(rows, i + 30) % (size_t)width);
        }
}

// Loops over the rows of a matrix in pieces of CHUNK numbers.
#define PIECES(piece, rows, columns)                                           \
    size_t piece = blockIdx.x, chunks = ((columns) + CHUNK - 1) / CHUNK;       \
    piece < (rows) * chunks;                                                   \
    piece += gridDim.x
#define WITHIN(column, piece, columns)                                         \
    int column = (int)(piece % chunks) * CHUNK + (int)threadIdx.x,             \
        end = column - (int)threadIdx.x + CHUNK < (columns)                    \
                  ? column - (int)threadIdx.x + CHUNK                          \
                  : (columns);                                                 \
    column < end;                                                              \
    column += THREADS

// Element k of row i of A, and element j of row k of B.
#define A_VALUE                                                                \
    (only < 0    ? share(places, only, k, K) * of_element(scale * factor[terms + k]) \
                       * value_of(A[row + from[terms + k]])                    \
     : only == k ? of_element(scale * factor[terms + k])                       \
                 : 0.0f)
#define B_VALUE                                                                \
    (selects[M + j] < 0                                                        \
         ? of_element(scale * factor[M + j]) * value_of(B[row + from[M + j]])  \
     : selects[M + j] == k ? of_element(scale * factor[M + j])                 \
                           : 0.0f)

// Writes A and B of one launch, and poison to C.
extern "C" __global__ void matrix_inputs(const word *A, const word *B, const int *from,
                                         const float *factor, const int *selects,
                                         const int *places, word *a, word *b, int M, int N, int K,
                                         unsigned *C, size_t C_words, unsigned poison)
{
    const size_t terms = (size_t)M + N;
    for (PIECES(piece, (size_t)M, K)) {
        const size_t i = piece / chunks, row = (size_t)from[i] * K;
        const float scale = factor[i];
        const int only = selects[i];
        for (WITHIN(k, piece, K))
            a[i * K + k] = word_of(A_VALUE);
    }
    for (PIECES(piece, (size_t)K, N)) {
        const int k = (int)(piece / chunks);
        const size_t row = (size_t)from[terms + k] * N;
        const float scale = 1.0f / factor[terms + k];
        for (WITHIN(j, piece, N))
            b[(size_t)k * N + j] = word_of(B_VALUE);
    }
    for (STRIDED(i, C_words))
        C[i] = poison;
}

// Writes the scales of one launch, and those of B transposed if that is how the kernel takes them.
extern "C" __global__ void matrix_scales(const float *scales_A, const float *scales_B,
                                         const int *from, const float *factor, int M, int N, int K,
                                         int scaled_rows, int scaled_columns, int scaled_terms,
                                         size_t row_step_a, size_t column_step_a,
                                         size_t row_step_b, size_t column_step_b, float *scale_a,
                                         float *scale_b)
{
    const size_t terms = (size_t)M + N;
    const size_t rows = ((size_t)M + scaled_rows - 1) / scaled_rows;
    const size_t columns = ((size_t)N + scaled_columns - 1) / scaled_columns;
    const size_t steps = ((size_t)K + scaled_terms - 1) / scaled_terms;
    for (STRIDED(at, rows * steps)) {
        const size_t i = at / steps, k = at % steps;
        const float power = fabsf(factor[i * scaled_rows] * factor[terms + k * scaled_terms]);
        const size_t row = from[i * scaled_rows] / scaled_rows;
        scale_a[i * row_step_a + k * column_step_a] =
            power * scales_A[row * steps + from[terms + k * scaled_terms] / scaled_terms];
    }
    for (STRIDED(at, steps * columns)) {
        const size_t k = at / columns, j = at % columns;
        const float power =
            fabsf(factor[M + j * scaled_columns] / factor[terms + k * scaled_terms]);
        const size_t row = from[terms + k * scaled_terms] / scaled_terms;
        scale_b[k * row_step_b + j * column_step_b] =
            power * scales_B[row * columns + from[M + j * scaled_columns] / scaled_columns];
    }
}

// Writes C before the launch of a kernel that reads it: permuted and scaled like the result.
extern "C" __global__ void matrix_contents(const real *contents, const int *from,
                                           const float *factor, int M, int N, real *C)
{
    for (STRIDED(at, (size_t)M * N)) {
        const size_t i = at / N, j = at % N;
        C[at] = factor[i] * factor[M + j] * contents[(size_t)from[i] * N + from[M + j]];
    }
}

// Counts the elements of A and B that have changed since `matrix_inputs`.
extern "C" __global__ void matrix_inputs_changed(const word *A, const word *B, const int *from,
                                                 const float *factor, const int *selects,
                                                 const int *places, const word *a, const word *b,
                                                 int M, int N, int K, size_t *partial)
{
    const size_t terms = (size_t)M + N;
    size_t wrong = 0;
    for (PIECES(piece, (size_t)M, K)) {
        const size_t i = piece / chunks, row = (size_t)from[i] * K;
        const float scale = factor[i];
        const int only = selects[i];
        for (WITHIN(k, piece, K))
            wrong += a[i * K + k] != word_of(A_VALUE);
    }
    for (PIECES(piece, (size_t)K, N)) {
        const int k = (int)(piece / chunks);
        const size_t row = (size_t)from[terms + k] * N;
        const float scale = 1.0f / factor[terms + k];
        for (WITHIN(j, piece, N))
            wrong += b[(size_t)k * N + j] != word_of(B_VALUE);
    }
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

// Compares C with the reference, permuted and scaled like the inputs; the error bound is
// of_S * S + of_R * |R| + least. If a row or column selects one term, C must be alpha times that
// term, plus beta times the old C (if `reads`). `exact` is 1 if that needs no rounding: then C must
// match to the last bit. If it is 0, the bound is of_term times that. It is -1 if the kernel splits
// its inputs or has a narrow range of exponents: then the error bound of small terms is that of 1.
//
// If all terms have random signs (`typical`), the bound of their sum is also LARGEST * of_T * T,
// where T is the product of the norms, or in sparse rows of_sparse * T, where T is the root of the
// sum of their squares; plus added * S. If the old C is added, a sum may begin with it, so that it is
// rounded with each term (`begun`). The excess is how much the squares of all errors, in units
// of the root mean square that is allowed, add up to more than their number. S is not needed if
// there are many terms and no claims (`has_S`).
extern "C" __global__ void matrix_compare(const real *C, const size_t *R, const size_t *S,
                                          size_t R_key, size_t S_key, int S_is_R, const word *A,
                                          const word *B, const real *contents, int reads,
                                          const int *from, const float *factor, const int *selects,
                                          const int *places, const float *scales_A,
                                          const float *scales_B, int scaled, int scaled_rows,
                                          int scaled_columns, int scaled_terms,
                                          const double *row_norms, const double *column_norms,
                                          int typical, int has_S, int M, int N, int K, double alpha,
                                          double beta, double of_S, double of_R, double least,
                                          double of_T, double of_sparse, double added,
                                          double of_term, int exact, size_t *partial)
{
    const size_t terms = (size_t)M + N;
    size_t wrong = 0, first = NONE;
    double excess = 0;
    for (PIECES(piece, (size_t)M, N)) {
        const size_t i = piece / chunks, row = from[i];
        const float scale = factor[i];
        const int of_row = selects[i];
        for (WITHIN(j, piece, N)) {
            const float power = scale * factor[M + j];
            const int of_column = selects[M + j];
            const size_t column = from[M + j], at = row * N + column;
            double wanted = __longlong_as_double(R[at] ^ mask_of(R_key, at)), size = wanted;
            if (!has_S)
                size = FAR;
            else if (!S_is_R)
                size = __longlong_as_double(S[at] ^ mask_of(S_key, at));
            wanted *= power;
            size = fabs(power * size);
            const double read = reads ? beta * power * contents[at] : 0.0;
            const double begun = of_T * fabs(read);
            double T = FAR, of_terms = FAR, of_size = of_S;
            if (of_row >= 0 || of_column >= 0) {
                const int k = from[terms + (of_row >= 0 ? of_row : of_column)];
                double term = of_row == of_column ? 1.0 : 0.0;
                if (of_column < 0)
                    term = value_of(B[(size_t)k * N + column]);
                else if (of_row < 0)
                    term = share(places, of_row, of_column, K) * value_of(A[row * K + k]);
                term *= scale_at(scales_A, scaled, row, k, scaled_rows, scaled_terms, K)
                        * scale_at(scales_B, scaled, k, column, scaled_terms, scaled_columns, N);
                wanted = alpha * power * term + read;
                size = exact == 1 ? 0.0 : fmax(fabs(wanted), fabs(exact ? (double)power : read));
                if (exact == 0) of_size = of_term;
            } else if (of_row < -1) {
                double sum = 0, squares = 0;
                size = 0;
                for (int s = 0; s < SPARSE_TERMS; ++s) {
                    const int k = from[terms + places[SPARSE_TERMS * (-2 - of_row) + s]];
                    const double term = (double)value_of(A[row * K + k])
                                        * value_of(B[(size_t)k * N + column]);
                    sum += term;
                    size += fabs(term);
                    squares += term * term;
                }
                wanted = REST * (wanted - read) + alpha * power * (1.0 - REST) * sum + read;
                size = fabs(alpha * power) * size + fabs(read);
                of_terms = of_sparse * fabs(alpha * power) * sqrt(squares) + added * size
                           + LARGEST * begun;
            } else if (typical) {
                T = of_T * fabs(power) * row_norms[row] * column_norms[column] + begun;
                of_terms = LARGEST * T + added * size;
            }
            const double rest = of_R * fabs(wanted) + least;
            const double error = fabs((double)C[i * N + j] - wanted);
            if (!(error <= fmin(of_size * size, of_terms) + rest)) {
                ++wrong;
                if (i * N + j < first) first = i * N + j;
            }
            if (T < FAR) {
                const double share_of_T = error > 0 ? error / (T + added * size + rest) : 0.0;
                excess += share_of_T * share_of_T - 1.0;
            }
        }
    }
    REPORT(partial, wrong, first, excess)
}

// Makes one number of A zero, and a row of R what it is then; `saved` keeps what was there. With
// `back`, puts it back. Launched as one block; a vector has no columns.
extern "C" __global__ void alter(word *A, const word *B, size_t *R, size_t R_key, size_t row,
                                 size_t term, size_t terms, size_t columns, double alpha,
                                 const float *scales_A, const float *scales_B, int scaled,
                                 int scaled_rows, int scaled_columns, int scaled_terms, int back,
                                 size_t *saved)
{
    word *place = A + row * terms + term;
    const double value =
        value_of(*place)
        * scale_at(scales_A, scaled, row, term, scaled_rows, scaled_terms, (int)terms);
    for (size_t j = threadIdx.x; j < columns; j += THREADS) {
        const size_t at = row * columns + j, mask = mask_of(R_key, at);
        if (!back) {
            saved[j] = R[at];
            const double other = scale_at(scales_B, scaled, term, j, scaled_terms, scaled_columns,
                                          (int)columns);
            const double rest = alpha * value * other * value_of(B[term * columns + j]);
            R[at] = __double_as_longlong(__longlong_as_double(R[at] ^ mask) - rest) ^ mask;
        } else {
            R[at] = saved[j];
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (!back)
            saved[columns] = *place;
        *place = back ? (word)saved[columns] : 0;
    }
}

// -- vectors: the dot product, the sum of cubes, the reversal ------------------------------------

// The origin of element i: a rotation, because the order does not affect the sum.
#define ROTATED(i) ((i) + shift < N ? (i) + shift : (i) + shift - N)

// The sign of each product is random, which changes the sum. Powers of two move from B to A.
static __device__ float sign_of(size_t bits)
{
    return bits & 1 ? -1.0f : 1.0f;
}

static __device__ float power_of(size_t bits, int most)
{
    return signed_power(between(bits >> 1, 0, most), 0);
}

extern "C" __global__ void dot_inputs(const word *A, const word *B, size_t key, size_t N, int most,
                                      int vary, word *a, word *b, unsigned *C, size_t C_words,
                                      unsigned poison)
{
    const size_t shift = vary ? drawn(key, 5) % N : 0;
    for (STRIDED(i, N)) {
        const size_t at = ROTATED(i), bits = vary ? drawn(key, i + 100) : 0;
        const float power = vary ? power_of(bits, most) : 1.0f;
        a[i] = word_of(sign_of(bits) * power * value_of(A[at]));
        b[i] = word_of(1.0f / power * value_of(B[at]));
    }
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void dot_inputs_changed(const word *A, const word *B, size_t key, size_t N,
                                              int most, int vary, const word *a, const word *b,
                                              size_t *partial)
{
    const size_t shift = vary ? drawn(key, 5) % N : 0;
    size_t wrong = 0;
    for (STRIDED(i, N)) {
        const size_t at = ROTATED(i), bits = vary ? drawn(key, i + 100) : 0;
        const float power = vary ? power_of(bits, most) : 1.0f;
        wrong += a[i] != word_of(sign_of(bits) * power * value_of(A[at]));
        wrong += b[i] != word_of(1.0f / power * value_of(B[at]));
    }
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

#define SUMS 4

// Each block's sums of four numbers per thread.
#define REPORT_SUMS(sums, one, two, three, four)                               \
    __shared__ double parts[SUMS][THREADS];                                    \
    parts[0][threadIdx.x] = one;                                               \
    parts[1][threadIdx.x] = two;                                               \
    parts[2][threadIdx.x] = three;                                             \
    parts[3][threadIdx.x] = four;                                              \
    for (int step = THREADS / 2; step > 0; step /= 2) {                        \
        __syncthreads();                                                       \
        if (threadIdx.x < step)                                                \
            for (int s = 0; s < SUMS; ++s)                                     \
                parts[s][threadIdx.x] += parts[s][threadIdx.x + step];         \
    }                                                                          \
    if (threadIdx.x == 0)                                                      \
        for (int s = 0; s < SUMS; ++s)                                         \
            sums[SUMS * (size_t)blockIdx.x + s] = parts[s][0];

// The expected sum, computed after the launch, and the sums of absolute values and of squares.
extern "C" __global__ void dot_sums(const word *A, const word *B, size_t key, size_t N, int vary,
                                    double *sums)
{
    const size_t shift = vary ? drawn(key, 5) % N : 0;
    double sum = 0, size = 0, squares = 0;
    for (STRIDED(i, N)) {
        const size_t at = ROTATED(i), bits = vary ? drawn(key, i + 100) : 0;
        const double product = (double)value_of(A[at]) * value_of(B[at]);
        sum += sign_of(bits) * product;
        size += fabs(product);
        squares += product * product;
    }
    REPORT_SUMS(sums, sum, size, squares, 0.0)
}

// Compares C, or the sum of its parts, one per block of the kernel. Launched as one block. The bound
// is as in `matrix_compare`, where T is the root of the sum of squares.
extern "C" __global__ void sum_compare(const unsigned *C, size_t C_words, int floats,
                                       const double *sums, int blocks, int typical, double of_S,
                                       double of_T, double added, size_t *partial)
{
    __shared__ double totals[SUMS];
    double found = 0, wanted = 0, size = 0, squares = 0;
    for (size_t i = threadIdx.x; i < C_words; i += THREADS)
        found += floats ? (double)__uint_as_float(C[i]) : (double)(int)C[i];
    for (int b = threadIdx.x; b < blocks; b += THREADS) {
        wanted += sums[SUMS * (size_t)b];
        size += sums[SUMS * (size_t)b + 1];
        squares += sums[SUMS * (size_t)b + 2];
    }
    REPORT_SUMS(totals, found, wanted, size, squares)
    if (threadIdx.x == 0) {
        const double total = floats ? (double)(float)totals[0] : totals[0];
        double allowed = of_S * totals[2];
        if (typical)
            allowed = fmin(allowed, LARGEST * of_T * sqrt(totals[3]) + added * totals[2]);
        const int right = fabs(total - totals[1]) <= allowed;
        partial[0] = right ? 0 : 1;
        partial[1] = right ? NONE : 0;
        partial[2] = 0;
    }
}

static __device__ int digit_of(size_t key, size_t i, int digit, int vary)
{
    return vary ? (digit + (int)(drawn(key, i + 100) % 10)) % 10 : digit;
}

extern "C" __global__ void cubes_inputs(const int *A, size_t key, size_t N, int vary, int *a,
                                        unsigned *C, size_t C_words, unsigned poison)
{
    for (STRIDED(i, N))
        a[i] = digit_of(key, i, A[i], vary);
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void cubes_inputs_changed(const int *A, size_t key, size_t N, int vary,
                                                const int *a, size_t *partial)
{
    size_t wrong = 0;
    for (STRIDED(i, N))
        wrong += a[i] != digit_of(key, i, A[i], vary);
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

extern "C" __global__ void cubes_sums(const int *A, size_t key, size_t N, int vary, double *sums)
{
    double sum = 0;
    for (STRIDED(i, N)) {
        const int digit = digit_of(key, i, A[i], vary);
        sum += digit * digit * digit;
    }
    REPORT_SUMS(sums, sum, 0.0, 0.0, 0.0)
}

static __device__ unsigned word_at(size_t key, size_t i, unsigned bits, int vary)
{
    return vary ? bits ^ (unsigned)drawn(key, i + 100) : bits;
}

extern "C" __global__ void reverse_inputs(const unsigned *A, size_t key, size_t N, int vary,
                                          unsigned *a, unsigned *C, size_t C_words, unsigned poison)
{
    for (STRIDED(i, N))
        a[i] = word_at(key, i, A[i], vary);
    for (STRIDED(i, C_words))
        C[i] = poison;
}

extern "C" __global__ void reverse_inputs_changed(const unsigned *A, size_t key, size_t N, int vary,
                                                  const unsigned *a, size_t *partial)
{
    size_t wrong = 0;
    for (STRIDED(i, N))
        wrong += a[i] != word_at(key, i, A[i], vary);
    REPORT(partial, wrong, wrong ? 0 : NONE, 0.0)
}

extern "C" __global__ void reverse_compare(const unsigned *A, size_t key, size_t N, int vary,
                                           const unsigned *C, size_t *partial)
{
    size_t wrong = 0, first = NONE;
    for (STRIDED(i, N))
        if (C[N - 1 - i] != word_at(key, i, A[i], vary)) {
            ++wrong;
            if (N - 1 - i < first) first = N - 1 - i;
        }
    REPORT(partial, wrong, first, 0.0)
}
