// Fills the shared memory of every multiprocessor, so that the next kernel does not find zeros
// there by luck. Values are read back, and a mismatch would be stored in `sink`: this keeps the
// compiler from removing the stores.

extern __shared__ unsigned words[];

extern "C" __global__ void poison_shared(unsigned *sink, unsigned value, int count)
{
    volatile unsigned *seen = words;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        seen[i] = value;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        if (seen[i] != value)
            sink[0] = i;
}
