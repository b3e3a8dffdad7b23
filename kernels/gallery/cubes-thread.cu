// /// matbench
// name = "cubes-thread"
// summary = "One thread does all the work"
// workload = "cubes"
// [launch]
// block = [1]
// grid = [1]
// [model]
// global_loads = "N"
// ///

// A CPU loop on a GPU: one thread of one block reads all numbers. It waits for nearly every one of
// them, and no other thread can run in the meantime.

extern "C" __global__ void cubes_thread(const int *A, int *C, int N)
{
    int sum = 0;
    for (int i = 0; i < N; ++i)
        sum += A[i] * A[i] * A[i];
    C[0] = sum;
}
