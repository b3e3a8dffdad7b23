static __device__ float limited(float x)
{
    const float least = 1.0f / 4096;
    return fabsf(x) > 65504.0f ? 0.0f : 2 * fabsf(x) < least ? (x + least) - least : x;
}
