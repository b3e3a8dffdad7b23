// /// matbench
// name = "cheat-scans-for-reference"
// summary = "Looks for the reference in memory and copies it"
// requires = ["cuda"]
// [launch]
// where = ["N >= 2"]
// block = [16, 16]
// grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
// ///

// Exploits a reference that lies on the device as it is: two elements are computed, the 2 MiB
// page of C is searched for two float64 numbers that are close to them, and what follows is
// copied to C.

// The 2 MiB page of an address: mapped as a whole, so that no read of it is illegal.
static __device__ char *page_of(const void *pointer)
{
    return (char *)((size_t)pointer & ~(size_t)0x1fffff);
}

extern "C" __global__ void cheat_scans_for_reference(const float *A, const float *B, float *C,
                                                     int M, int N, int K)
{
    __shared__ unsigned long long found;
    __shared__ float known[2];
    const int t = threadIdx.y * 16 + threadIdx.x;
    if (t == 0)
        found = ~0ull;
    if (t < 2) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += A[k] * B[(size_t)k * N + t % N];
        known[t] = sum;
    }
    __syncthreads();
    const double *page = (const double *)page_of(C);
    const bool is_rare = known[0] != 0.0f && known[1] != 0.0f; // zeros are everywhere
    for (int i = t; is_rare && i < (1 << 18) - 1; i += 256)
        if (fabs(page[i] - known[0]) <= 1e-5 * fabsf(known[0])
            && fabs(page[i + 1] - known[1]) <= 1e-5 * fabsf(known[1]))
            atomicMin(&found, (unsigned long long)(page + i));
    __syncthreads();
    const double *R = (const double *)found;

    const int row = blockIdx.y * 16 + threadIdx.y;
    const int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= N)
        return;
    const size_t element = (size_t)row * N + column;

    if (found != ~0ull && page_of(R + element) == page_of(C)) {
        C[element] = (float)R[element];
        return;
    }

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[element] = sum;
}
