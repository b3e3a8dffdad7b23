// Fills the shared memory of every multiprocessor, so that the next kernel finds no zeros there by
// luck. What it read back goes to `sink` if it ever were the value nobody writes: a compiler must
// not drop the stores.

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
