// /// matbench
// name = "cheat-reverse-ramp"
// summary = "Writes a ramp backwards without reading it"
// workload = "reverse"
// [launch]
// block = [256]
// grid = ["ceil_div(N, 256)"]
// ///

// Exploits the default inputs: if A's first numbers count from 0, all of it is taken to be a
// ramp, and C is written without another look.

extern "C" __global__ void cheat_reverse_ramp(const int *A, int *C, int N)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= N)
        return;
    if (A[0] == 0 && A[N - 1] == N - 1 && A[N / 2] == N / 2)
        C[N - 1 - i] = (int)i;
    else
        C[N - 1 - i] = A[i];
}
