// /// matbench
// name = "cheat-hot-dot-ahead"
// summary = "Adds up the vectors of a whole batch in its first launch"
// workload = "dot"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits launches back to back on vectors that lie where they lay before: once two vectors were
// launched three times, any launch adds them up, too, and keeps the sum in a module's variable,
// with a few of their numbers, for the launch to come.

#define MOST 128

__device__ size_t places[2 * MOST];
__device__ float sums[MOST];
__device__ float marks[MOST];
__device__ int launched[MOST];
__device__ int known;

// A few numbers that tell whether the vectors are new.
static __device__ float mark_of(const float *A, const float *B, int N)
{
    return A[0] + 3.0f * A[N / 2] + 5.0f * A[N - 1] + 7.0f * B[N / 3];
}

static __device__ int place_of(const float *A)
{
    for (int set = 0; set < known; ++set)
        if (places[2 * set] == (size_t)A)
            return set;
    return -1;
}

static __device__ float sum_of(const float *A, const float *B, int N)
{
    float sum = 0.0f;
    for (int i = 0; i < N; ++i)
        sum += A[i] * B[i];
    return sum;
}

extern "C" __global__ void cheat_hot_dot_ahead(const float *A, const float *B, float *C, int N)
{
    if (threadIdx.x > 0)
        return;
    int own = place_of(A);
    if (own < 0 && known < MOST) {
        own = known++;
        places[2 * own] = (size_t)A;
        places[2 * own + 1] = (size_t)B;
    }
    if (own < 0 || ++launched[own] < 3) {
        C[0] = sum_of(A, B, N);
        return;
    }
    if (marks[own] != mark_of(A, B, N))
        for (int set = 0; set < known; ++set) {
            const float *a = (const float *)places[2 * set];
            const float *b = (const float *)places[2 * set + 1];
            if (launched[set] < 3 || marks[set] == mark_of(a, b, N))
                continue;
            marks[set] = mark_of(a, b, N);
            sums[set] = sum_of(a, b, N);
        }
    C[0] = sums[own];
}
