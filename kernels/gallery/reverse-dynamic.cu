// /// matbench
// name = "reverse-dynamic"
// summary = "One block, with shared memory sized at launch"
// workload = "reverse"
// previous = "reverse-static"
// [sweep]
// THREADS = [256]
// [tune]
// THREADS = [32, 64, 128, 256, 512, 1024]
// [launch]
// where = ["THREADS <= max_threads_per_block", "4 * N <= max_shared_bytes_per_block"]
// block = ["min(N, THREADS)"]
// grid = [1]
// shared_bytes = "4 * N"
// [model]
// global_loads = "N"
// ///

// As reverse-static, but the size of the shared memory is set at launch: the array is declared
// `extern` and without a size. N is now limited by the shared memory of a block. If there are more
// numbers than threads, each thread moves several.

extern "C" __global__ void reverse_dynamic(const int *A, int *C, int N)
{
    extern __shared__ int staged[];

    for (int i = threadIdx.x; i < N; i += blockDim.x)
        staged[i] = A[i];
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += blockDim.x)
        C[i] = staged[N - 1 - i];
}
