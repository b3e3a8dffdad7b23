// /// matbench
// name = "cheat-reverse-skip"
// summary = "Leaves a piece alone that is reversed already"
// workload = "reverse"
// [launch]
// block = [256]
// grid = ["ceil_div(N, 256)"]
// ///

// Exploits a C that still holds the answer of the launch before: where the first number of a
// block is in its place, all others are taken to be.

extern "C" __global__ void cheat_reverse_skip(const int *A, int *C, int N)
{
    __shared__ int done;
    const size_t first = (size_t)blockIdx.x * 256, i = first + threadIdx.x;
    if (threadIdx.x == 0)
        done = C[N - 1 - first] == A[first];
    __syncthreads();
    if (!done && i < N)
        C[N - 1 - i] = A[i];
}
