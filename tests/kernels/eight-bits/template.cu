// /// matbench
// name = "eight-bits"
// storage = "STORAGE"
// transpose = "NT"
KEYS// args = ["A", "B", "C", ARGUMENTS"M", "N", "K", "alpha"]
// [launch]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

static __device__ NUMBER number(unsigned char bits)
{
DECODED
}

extern "C" __global__ void eight_bits(const unsigned char *A, const unsigned char *B, RESULT *C,
                                      PARAMETERSint M, int N, int K, NUMBER alpha)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int steps = (K + 127) / 128, strips = (N + 127) / 128;
    (void)steps, (void)strips;
    if (i >= M || j >= N) return;
    NUMBER sum = 0;
    for (int k = 0; k < K; ++k) {
        const NUMBER a = number(A[(size_t)i * K + k]), b = number(B[(size_t)j * K + k]);
        sum += TERM;
    }
    C[(size_t)i * N + j] = (RESULT)(alpha * sum);
}
