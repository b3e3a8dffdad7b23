// /// matbench
// name = "bad-cubes-in-float"
// summary = "Adds up in float"
// workload = "cubes"
// [launch]
// block = [1]
// grid = [1]
// ///

// The mistake, in cubes-thread: the sum is a float, and beyond 2²⁴ not every whole number is one.

extern "C" __global__ void bad_cubes_in_float(const int *A, int *C, int N)
{
    float sum = 0.0f;
    for (int i = 0; i < N; ++i)
        sum += A[i] * A[i] * A[i];
    C[0] = sum;
}
