
#define KERNEL extern "C" __global__ void
#define RESTRICT __restrict__
#define MADE(name, T) __global__ void name(T *p, int n) { }
extern "C" {
__global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 1, 1)
    first(const __grid_constant__ CUtensorMap map, float *__restrict__ A, float B[], int n = 3) { }
}
namespace outer { namespace {
template <typename T = float, int BM = 64, const bool ODD = (3 > 2), class U>
static __global__ void __launch_bounds__((BM * 2)) second(T *A, T const *RESTRICT B, std::size_t n)
{ for (EACH(i, n)) { A[i] = B[i]; } }
} }
KERNEL third(unsigned long long x, int32_t m) { }
MADE(fourth, double)
template <> __global__ void special<3>(int m) { }
int main() { third<<<1, 2>>>(3, 4); }
