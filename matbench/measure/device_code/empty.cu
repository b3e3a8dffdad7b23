// What a launch costs that does nothing.
extern "C" __global__ void empty(int nothing)
{
    (void)nothing;
}
