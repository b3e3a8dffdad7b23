// Keeps the device busy for so many cycles, and no memory, while the host enqueues what is timed.
extern "C" __global__ void hold(long long cycles)
{
    const long long start = clock64();
    for (int i = 0; i < 1000000 && clock64() - start < cycles; ++i)
        ;
}
