// Each block's slot holds its start and end on two clocks, and its multiprocessor. The stamps must
// not change what they time, so no value stays in a register during the kernel: the start is stored
// at once, and the end reads lane and block again from special registers. (Keeping these few values
// in registers meant fewer loads in flight, and up to twice the time.)
struct matbench_stamp { unsigned long long start, end, start_ns, end_ns, unit; };
#define MATBENCH_SPECIAL(name, type, constraint, move, register)                          \
    static __device__ __forceinline__ type name(void)                                     \
    { type value; asm volatile(move " %0, %%" register ";" : constraint(value)); return value; }
MATBENCH_SPECIAL(matbench_ns, unsigned long long, "=l", "mov.u64", "globaltimer")
MATBENCH_SPECIAL(matbench_unit, unsigned, "=r", "mov.u32", "smid")
MATBENCH_SPECIAL(matbench_lane, unsigned, "=r", "mov.u32", "laneid")
MATBENCH_SPECIAL(matbench_block_x, unsigned, "=r", "mov.u32", "ctaid.x")
MATBENCH_SPECIAL(matbench_block_y, unsigned, "=r", "mov.u32", "ctaid.y")
MATBENCH_SPECIAL(matbench_block_z, unsigned, "=r", "mov.u32", "ctaid.z")
static __device__ __forceinline__ matbench_stamp *matbench_slot(matbench_stamp *stamps)
{
    return stamps + matbench_block_x() + (size_t)gridDim.x
        * (matbench_block_y() + (size_t)gridDim.y * matbench_block_z());
}
static __device__ __forceinline__ void matbench_begin(matbench_stamp *stamps)
{
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
        matbench_stamp *stamp = matbench_slot(stamps);
        stamp->unit = matbench_unit();
        stamp->start_ns = matbench_ns();
        stamp->start = clock64();
    }
}
static __device__ __forceinline__ void matbench_end(matbench_stamp *stamps)
{
    if (matbench_lane() == 0) {
        matbench_stamp *stamp = matbench_slot(stamps);
        atomicMax(&stamp->end, (unsigned long long)clock64());
        atomicMax(&stamp->end_ns, matbench_ns());
    }
}
