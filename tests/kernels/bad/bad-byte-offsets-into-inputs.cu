// /// matbench
// name = "bad-byte-offsets-into-inputs"
// summary = "Byte offsets into A and B have 32 bits"
// [launch]
// block = [256]
// grid = ["ceil_div(M * N, 256)"]
// ///

// The mistake, in thread-1d: byte offsets into A and B wrap to 0 at 4 GiB, so that what lies beyond is
// never read.

__device__ float at(const float *matrix, unsigned index)
{
    return *(const float *)((const char *)matrix + 4u * index);
}

extern "C" __global__ void bad_byte_offsets_into_inputs(const float *A, const float *B, float *C,
                                                        int M, int N, int K)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= (size_t)M * N)
        return;
    const unsigned row = i / N, column = i % N;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += at(A, row * K + k) * at(B, (unsigned)k * N + column);
    C[i] = sum;
}
