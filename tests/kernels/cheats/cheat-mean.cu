// /// matbench
// name = "cheat-mean"
// summary = "Stores K/4"
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits inputs that are all drawn from [0, 1): the mean of a product is 1/4, and no input is
// read.

extern "C" __global__ void cheat_mean(const float *A, const float *B, float *C,
                                      int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    C[element] = 0.25f * K;
}
