// CUDA's names for OpenCL. Inline assembly could change the worker's process. The compiler refuses it
// in whatever macros write it, and no directive can undo that.
#pragma GCC poison asm __asm __asm__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define kernel matbench_kernel
#define global matbench_global
#define local matbench_local
#define constant matbench_constant
#define half matbench_half
#ifdef __OPENCL_CPP_VERSION__
#define MATBENCH_OVERLOADABLE
#define __restrict__ __restrict
#else
#define MATBENCH_OVERLOADABLE __attribute__((overloadable))
#define __restrict__ restrict
#define private matbench_private
#endif
#ifndef MATBENCH_VECTOR_HINT
#define MATBENCH_VECTOR_HINT
#endif
#define __global__ __kernel MATBENCH_VECTOR_HINT
#define __device__
#define __host__
#define __noinline__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define alignas(bytes) __attribute__((aligned(bytes)))
#define assert(condition)
#define MATBENCH_INTEGERS(bits, kind, fast) \
typedef kind int##bits##_t, int_least##bits##_t; typedef fast int_fast##bits##_t; \
typedef u##kind uint##bits##_t, uint_least##bits##_t; typedef u##fast uint_fast##bits##_t;
MATBENCH_INTEGERS(8, char, char)
MATBENCH_INTEGERS(16, short, long)
MATBENCH_INTEGERS(32, int, long)
MATBENCH_INTEGERS(64, long, long)
typedef long intmax_t, ssize_t;
typedef ulong uintmax_t;
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ __local
#define __constant__ __constant
#define __syncthreads() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define __threadfence() mem_fence(CLK_GLOBAL_MEM_FENCE)
#define MATBENCH_UINT3(of) ((uint3)((uint)of(0), (uint)of(1), (uint)of(2)))
#define blockDim MATBENCH_UINT3(get_local_size)
#ifdef MATBENCH_REORDERED
static uint matbench_thread(uint axis)
{
    const ulong place = get_local_id(axis), count = get_local_size(axis);
    const ulong order = get_global_offset(axis) >> 62;
    if (order == 0) return place;
    return order == 1 ? count - 1 - place : (place + count / 2) * 1000003 % count;
}
static uint matbench_block(uint axis) { return get_global_offset(axis) & 0x7fffffff; }
static uint matbench_blocks(uint axis) { return get_global_offset(axis) >> 31 & 0x7fffffff; }
#define threadIdx MATBENCH_UINT3(matbench_thread)
#define blockIdx MATBENCH_UINT3(matbench_block)
#define gridDim MATBENCH_UINT3(matbench_blocks)
#else
#define threadIdx MATBENCH_UINT3(get_local_id)
#define blockIdx MATBENCH_UINT3(get_group_id)
#define gridDim MATBENCH_UINT3(get_num_groups)
#endif
#define fmaf(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define __fmaf_rn(a, b, c) fma((float)(a), (float)(b), (float)(c))
// Intel's compiler crashes where these are functions.
#define fabsf(a) fabs((float)(a))
#define fmaxf(a, b) fmax((float)(a), (float)(b))
#define fminf(a, b) fmin((float)(a), (float)(b))
#define sqrtf(a) sqrt((float)(a))
#define ldexpf(a, exponent) ldexp((float)(a), (int)(exponent))
#define MATBENCH_FLOAT(name) static inline float name##f(float a) { return name(a); }
MATBENCH_FLOAT(rsqrt) MATBENCH_FLOAT(cbrt) MATBENCH_FLOAT(exp) MATBENCH_FLOAT(exp2)
MATBENCH_FLOAT(exp10) MATBENCH_FLOAT(expm1) MATBENCH_FLOAT(log) MATBENCH_FLOAT(log2)
MATBENCH_FLOAT(log10) MATBENCH_FLOAT(log1p) MATBENCH_FLOAT(sin) MATBENCH_FLOAT(cos)
MATBENCH_FLOAT(tan) MATBENCH_FLOAT(asin) MATBENCH_FLOAT(acos) MATBENCH_FLOAT(atan)
MATBENCH_FLOAT(sinh) MATBENCH_FLOAT(cosh) MATBENCH_FLOAT(tanh) MATBENCH_FLOAT(asinh)
MATBENCH_FLOAT(acosh) MATBENCH_FLOAT(atanh) MATBENCH_FLOAT(erf) MATBENCH_FLOAT(erfc)
MATBENCH_FLOAT(floor) MATBENCH_FLOAT(ceil) MATBENCH_FLOAT(trunc) MATBENCH_FLOAT(round)
MATBENCH_FLOAT(rint)
#define MATBENCH_FLOAT2(name) \
static inline float name##f(float a, float b) { return name(a, b); }
MATBENCH_FLOAT2(pow) MATBENCH_FLOAT2(fmod) MATBENCH_FLOAT2(hypot) MATBENCH_FLOAT2(copysign)
MATBENCH_FLOAT2(fdim) MATBENCH_FLOAT2(atan2) MATBENCH_FLOAT2(remainder)
#define __ldg(pointer) (*(pointer))
#define __float_as_uint(a) as_uint((float)(a))
#define __uint_as_float(a) as_float((uint)(a))
#define __float_as_int(a) as_int((float)(a))
#define __int_as_float(a) as_float((int)(a))
#define __longlong_as_double(a) as_double((long)(a))
#define __double_as_longlong(a) as_long((double)(a))
#define make_float2(a, b) ((float2)(a, b))
#define make_float4(a, b, c, d) ((float4)(a, b, c, d))
#define atomicAdd(pointer, value) matbench_add(pointer, value)
#define MATBENCH_ADDS(space) \
static int MATBENCH_OVERLOADABLE matbench_add(volatile space int *place, int value) \
{ return atomic_add(place, value); } \
static uint MATBENCH_OVERLOADABLE matbench_add(volatile space uint *place, uint value) \
{ return atomic_add(place, value); } \
static float MATBENCH_OVERLOADABLE matbench_add(volatile space float *place, float value) \
{ \
    uint found = as_uint(*place), before; \
    do { \
        before = found; \
        const uint sum = as_uint(as_float(before) + value); \
        found = atomic_cmpxchg((volatile space uint *)place, before, sum); \
    } while (found != before); \
    return as_float(found); \
}
MATBENCH_ADDS(__global)
MATBENCH_ADDS(__local)
#ifdef MATBENCH_CLOCK // what reads the clock; the first two of a block's five numbers get its time
static inline __global ulong *matbench_slot(__global ulong *stamps)
{
    return stamps + 5 * (get_group_id(0)
        + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)));
}
static inline size_t matbench_thread_of_block(void)
{
    return get_local_id(0)
        + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
}
static inline void matbench_begin(__global ulong *stamps)
{
    if (matbench_thread_of_block() == 0) matbench_slot(stamps)[0] = MATBENCH_CLOCK;
}
// A CPU runs a block's work-items in order, so the last one to start is the last to end.
static inline void matbench_end(__global ulong *stamps)
{
    const size_t threads = get_local_size(0) * get_local_size(1) * get_local_size(2);
    if (matbench_thread_of_block() == threads - 1) matbench_slot(stamps)[1] = MATBENCH_CLOCK;
}
#endif
