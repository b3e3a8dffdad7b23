// Inputs of the matrix product, and the comparison of its result.

#include "samples.cuh"

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

// The same for whole groups, and within each of them. A last, smaller one stays last.
static __device__ int permuted_in_groups(size_t key, int index, int count, int group)
{
    if (group == 1 || group >= count) return permuted(key, index, count);
    const int whole = count / group, place = index / group;
    const int origin = place < whole ? permuted(key, place, whole) : place;
    const int size = place < whole ? group : count - whole * group;
    return origin * group + permuted(mixed(key + place), index % group, size);
}

// Which of the at most `most` lines drawn from place `from` on line `index` is; -1 for most lines,
// which are none. Of few lines only one is drawn, or none.
static __device__ int picked(size_t key, int from, int most, int index, int count)
{
    const int some = count >= 32 ? most : count >= 8 ? 1 : (int)(drawn(key, from) % 2);
    int which = -1;
    for (int n = 0; n < some; ++n)
        if (drawn(key, from + 1 + n) % (size_t)count == (size_t)index) which = n;
    return which;
}

// In a sparse row, SPARSE_TERMS terms are as in any row, and all others REST (2^-30) of that.
#define SELECTING 4
#define SPARSE_ROWS 2
#define SPARSE_TERMS 32
#define REST (1.0f / 1073741824.0f)

// The share of term k that a row has which selects `only`.
static __device__ float share(const int *places, int only, int k, int K)
{
    if (only >= -1) return 1.0f;
    const int s = k / (K / SPARSE_TERMS);
    return s < SPARSE_TERMS && places[SPARSE_TERMS * (-2 - only) + s] == k ? 1.0f : REST;
}

// For M rows, then N columns, then K terms: the origin of each, its factor, and the single term
// that it selects, or -1; for sparse rows -2 or -3. Exponents of A and B grow by at most `up` or
// shrink by at most `down`; what has a scale in common has one power.
extern "C" __global__ void draw_order(size_t key, int M, int N, int K, int up, int down,
                                      int vary, int select, int sparse_rows, int scaled_rows,
                                      int scaled_columns, int scaled_terms, int *from,
                                      float *factor, int *selects, int *places)
{
    const int of_term = min(up, down) / 2, a_grows = drawn(key, 4) & 1;
    for (STRIDED(i, (size_t)M + N + K)) {
        const int axis = (i >= (size_t)M) + (i >= (size_t)M + N);
        const int count = axis == 0 ? M : axis == 1 ? N : K;
        const int group = axis == 0 ? scaled_rows : axis == 1 ? scaled_columns : scaled_terms;
        const int index = (int)i - (axis > 0 ? M : 0) - (axis > 1 ? N : 0);
        const int low = axis == 2 ? -of_term : of_term - down;
        const int high = axis == 2 ? of_term : up - of_term;
        const int grows = axis == 1 ? !a_grows : a_grows;
        const size_t own = mixed(key + 1 + axis);
        const size_t bits = drawn(own, (size_t)(index / group) * group + 100);
        const int negative = (int)(drawn(own, (size_t)index + 100) & 1);
        const int power = between(bits >> 1, grows ? 0 : low, grows ? high : 0);
        from[i] = vary ? permuted_in_groups(own, index, count, group) : index;
        factor[i] = vary ? signed_power(power, negative) : 1.0f;
        if (axis == 2) continue;
        int which = select ? picked(own, 9, SELECTING, index, count) : -1;
        selects[i] = which < 0 ? -1 : (int)(drawn(own, 14 + which) % (size_t)K);
        if (axis == 1 || !sparse_rows || which >= 0) continue;
        which = picked(own, 19, SPARSE_ROWS, index, M);
        selects[i] = which < 0 ? -1 : -2 - which;
    }
    if (sparse_rows)
        for (STRIDED(i, SPARSE_ROWS * SPARSE_TERMS)) {
            const int width = K / SPARSE_TERMS;
            places[i] = (int)(i % SPARSE_TERMS) * width
                        + (int)(drawn(mixed(key + 1), i + 30) % (size_t)width);
        }
}

// Loops over the rows of a matrix in pieces of CHUNK numbers.
#define PIECES(piece, rows, columns)                                           \
    size_t piece = blockIdx.x, chunks = ((columns) + CHUNK - 1) / CHUNK;       \
    piece < (rows) * chunks;                                                   \
    piece += gridDim.x
#define WITHIN(column, piece, columns)                                         \
    int column = (int)(piece % chunks) * CHUNK + (int)threadIdx.x,             \
        end = min(column - (int)threadIdx.x + CHUNK, columns);                 \
    column < end;                                                              \
    column += THREADS

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
            a[i * K + k] = word_of(
                only < 0    ? share(places, only, k, K) * of_element(scale * factor[terms + k])
                                  * value_of(A[row + from[terms + k]])
                : only == k ? of_element(scale * factor[terms + k])
                            : 0.0f);
    }
    for (PIECES(piece, (size_t)K, N)) {
        const int k = (int)(piece / chunks);
        const size_t row = (size_t)from[terms + k] * N;
        const float scale = 1.0f / factor[terms + k];
        for (WITHIN(j, piece, N))
            b[(size_t)k * N + j] = word_of(
                selects[M + j] < 0
                    ? of_element(scale * factor[M + j]) * value_of(B[row + from[M + j]])
                : selects[M + j] == k ? of_element(scale * factor[M + j])
                                      : 0.0f);
    }
    for (STRIDED(i, C_words))
        C[i] = poison;
}

// Writes the scales of one launch, and those of B transposed if that is how the kernel takes them.
extern "C" __global__ void matrix_scales(
        const float *scales_A, const float *scales_B, const int *from, const float *factor, int M,
        int N, int K, int scaled_rows, int scaled_columns, int scaled_terms, size_t row_step_a,
        size_t column_step_a, size_t row_step_b, size_t column_step_b, float *scale_a,
        float *scale_b)
{
    const size_t terms = (size_t)M + N;
    const size_t rows = ((size_t)M + scaled_rows - 1) / scaled_rows;
    const size_t columns = ((size_t)N + scaled_columns - 1) / scaled_columns;
    const size_t steps = ((size_t)K + scaled_terms - 1) / scaled_terms;
    for (STRIDED(at, rows * steps)) {
        const size_t i = at / steps, k = at % steps;
        const size_t row = i * scaled_rows, term = terms + k * scaled_terms;
        scale_a[i * row_step_a + k * column_step_a] = fabsf(factor[row] * factor[term])
            * scales_A[from[row] / scaled_rows * steps + from[term] / scaled_terms];
    }
    for (STRIDED(at, steps * columns)) {
        const size_t k = at / columns, j = at % columns;
        const size_t term = terms + k * scaled_terms, column = M + j * scaled_columns;
        scale_b[k * row_step_b + j * column_step_b] = fabsf(factor[column] / factor[term])
            * scales_B[from[term] / scaled_terms * columns + from[column] / scaled_columns];
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
//
// With ACCURACY, rows of `figures` are each thread's number of errors that are not finite, its largest
// |C - R| / |R|, their sum, how many R are not 0, and the largest |C - R| / bound.
extern "C" __global__ void matrix_compare(
        const real *C, const size_t *R, const size_t *S, size_t R_key, size_t S_key, int S_is_R,
        const word *A, const word *B, const real *contents, int reads, const int *from,
        const float *factor, const int *selects, const int *places, const float *scales_A,
        const float *scales_B, int scaled, int scaled_rows, int scaled_columns, int scaled_terms,
        const double *row_norms, const double *column_norms, int typical, int has_S, int M, int N,
        int K, double alpha, double beta, double of_S, double of_R, double least, double of_T,
        double of_sparse, double added, double of_term, int exact, size_t *partial, double *figures)
{
    const size_t terms = (size_t)M + N;
    size_t wrong = 0, first = NONE;
    double excess = 0;
#if ACCURACY
    double wild = 0, largest = 0, total = 0, nonzero = 0, most = 0;
#endif
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
#if INT_C // modulo 2^32
            const double error = fabs((double)(int)((unsigned)C[i * N + j] - (unsigned)(long long)wanted));
#else
            const double error = fabs((double)C[i * N + j] - wanted);
#endif
            const double allowed = fmin(of_size * size, of_terms) + rest;
            if (!(error <= allowed)) {
                ++wrong;
                if (i * N + j < first) first = i * N + j;
            }
#if ACCURACY
            if (!(error <= 1e300)) {
                wild += 1;
                continue;
            }
            if (allowed > 0) most = fmax(most, error / allowed);
            if (wanted != 0) {
                largest = fmax(largest, error / fabs(wanted));
                total += error / fabs(wanted);
                nonzero += 1;
            }
#endif
            if (T < FAR) {
                const double share_of_T = error > 0 ? error / (T + added * size + rest) : 0.0;
                excess += share_of_T * share_of_T - 1.0;
            }
        }
    }
#if ACCURACY
    const size_t threads = (size_t)gridDim.x * THREADS, t = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const double found[5] = {wild, largest, total, nonzero, most};
    for (int f = 0; f < 5; ++f) figures[f * threads + t] = found[f];
#endif
    REPORT(partial, wrong, first, excess)
}
