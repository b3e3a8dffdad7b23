// Keeps the device busy for `cycles`, without using memory, while the host enqueues timed launches.
extern "C" __global__ void hold(long long cycles)
{
    const long long start = clock64();
    for (int i = 0; i < 1000000 && clock64() - start < cycles; ++i) { }
}
