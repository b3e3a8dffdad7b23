// /// matbench
// name = "bad-reverse-upper-half"
// summary = "The upper half takes what the lower half may not have put yet"
// workload = "reverse"
// [launch]
// block = [256]
// grid = ["ceil_div(N, 256)"]
// ///

// The mistake, in reverse-blocks: each thread of the upper half stores two numbers, of which one is
// its counterpart's, without waiting for it.

extern "C" __global__ void bad_reverse_upper_half(const int *A, int *C, int N)
{
    __shared__ int staged[256];
    const int start = blockIdx.x * 256, t = threadIdx.x;
    const int count = N - start < 256 ? N - start : 256;
    if (t < count)
        staged[t] = A[start + t];
    // no barrier
    if (t < count && t >= count / 2) {
        C[N - start - 1 - t] = staged[t];
        C[N - start - count + t] = staged[count - 1 - t];
    }
}
