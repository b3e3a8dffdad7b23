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

// The loop of a CPU, put on a GPU as it is: one thread of one block walks over all numbers. It
// waits for nearly every one of them, and there is no other thread to run meanwhile.

extern "C" __global__ void cubes_thread(const int *A, int *C, int N)
{
    int sum = 0;
    for (int i = 0; i < N; ++i)
        sum += A[i] * A[i] * A[i];
    C[0] = sum;
}
