// Does nothing: its time is the cost of a launch.
extern "C" __global__ void empty(int nothing)
{
}
