// /// matbench
// name = "cheat-pasted-assembly"
// summary = "Writes inline assembly with a macro, to change its process"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits that a CPU's kernel runs in matbench's own process, and that a macro can write a word that
// the text does not have. From here every system call can be made: to make the clock's code
// writable, for example, and to slow the clock down for all kernels that follow.

#define OF(machine) __as##machine##__

static __device__ long process(void)
{
    long found = 39; // getpid
    OF(m) volatile("syscall" : "+a"(found) : : "rcx", "r11", "memory");
    return found;
}

extern "C" __global__ void cheat_pasted_assembly(const float *A, const float *B, float *C, int M,
                                                 int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N || process() == 0)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
