// Fills the shared memory of every multiprocessor, so that the next kernel does not find zeros
// there by luck. Words are read back by other threads than wrote them, and a difference would be
// stored in `sink`: this keeps the compiler from removing the stores.

extern __shared__ unsigned words[];

extern "C" __global__ void poison_shared(unsigned *sink, unsigned value, int count)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        words[i] = value;
    __syncthreads();
    unsigned differences = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        differences |= words[count - 1 - i] ^ value;
    if (differences) sink[0] = differences;
}
