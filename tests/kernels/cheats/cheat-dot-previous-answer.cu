// /// matbench
// name = "cheat-dot-previous-answer"
// summary = "Returns the previous answer"
// workload = "dot"
// [launch]
// block = [256]
// grid = [1]
// ///

// Exploits variables that outlive a launch: each launch stores what the one before found, and
// only then, if there was none, computes.

__device__ float answer;
__device__ int has_answer;

extern "C" __global__ void cheat_dot_previous_answer(const float *A, const float *B, float *C,
                                                     int N)
{
    __shared__ float sums[256];
    const int t = threadIdx.x;
    if (has_answer) {
        if (t == 0)
            C[0] = answer;
        return;
    }

    float sum = 0.0f;
    for (int i = t; i < N; i += 256)
        sum += A[i] * B[i];
    sums[t] = sum;
    __syncthreads();
    for (int active = 128; active > 0; active /= 2) {
        if (t < active)
            sums[t] += sums[t + active];
        __syncthreads();
    }
    if (t == 0) {
        C[0] = answer = sums[0];
        has_answer = 1;
    }
}
