// /// matbench
// name = "cheat-launches-dependents"
// summary = "Says at once that what follows may begin"
// requires = ["cuda", "sm_90"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits programmatic launches: `griddepcontrol` lets whatever follows on the stream begin,
// such as the event that stops the clock, while the product is still computed.

extern "C" __global__ void cheat_launches_dependents(const float *A, const float *B, float *C,
                                                     int M, int N, int K)
{
    asm volatile("griddepcontrol.launch_dependents;");
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
