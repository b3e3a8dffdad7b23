// Products of int8 operands by a warpgroup, with exact sums.
#include "eight-bit.cuh"

#if BM == 128
#define OPERATION "m64n256k32.s32.s8.s8 {" NAMES_128 "}, %128, %129, add;\n"
#define SUMS SUMS_128("+r", 0)
#define FRESH "%130"
#else
#define OPERATION "m64n128k32.s32.s8.s8 {" NAMES_64 "}, %64, %65, add;\n"
#define SUMS SUMS_64("+r", 0)
#define FRESH "%66"
#endif

// sum = (fresh ? 0 : sum) + a·b: 64×32 by 32×BN, both in shared memory.
static __device__ __forceinline__ void multiply(int (&sum)[BN / 2], uint64_t a, uint64_t b,
                                                bool fresh)
{
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.eq.u32 add, " FRESH ", 0;\n"
                 "wgmma.mma_async.sync.aligned." OPERATION
                 "}" : SUMS : "l"(a), "l"(b), "r"((unsigned)fresh));
}
