// /// matbench
// name = "hostile-spin"
// summary = "Keeps the device busy for some 8 seconds"
// [sweep]
// TILE = [16]
// [launch]
// block = ["TILE", "TILE"]
// grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
// ///

// Right, but the first thread spins for some 8 seconds in every launch: longer than a deadline may
// be set for a test, and never without an end.

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void hostile_spin(const float *A, const float *B, float *C,
                                        int M, int N, int K)
{
    // For about 8 seconds, and no longer.
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
#ifdef __CUDACC__
        unsigned long now, start;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
        do
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        while (now - start < 8000000000ul);
#else
        // Each step waits for the one before: some 4 cycles.
        unsigned long state = M;
        for (unsigned long step = 0; step < 6000000000ul; ++step)
            state = state * 6364136223846793005ul + 1442695040888963407ul;
        if (state == 0)
            C[0] = 0.0f;
#endif
    }

    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];

    C[(size_t)row * N + column] = sum;
}
