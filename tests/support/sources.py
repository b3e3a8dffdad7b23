"""CUDA C that tests read and rewrite."""

from __future__ import annotations

from matbench.kernelfile import signature
from matbench.model import Kernel, LaunchRules

PATH = "folder/mine.cu"
SEVERAL = """
__device__ float twice(const float *x) { return 2 * *x; }
/* extern "C" __global__ void
   entry(int *not_this_one) */
extern "C" __global__ void helper(unsigned *words, size_t n) { words[n] = 1; }

extern "C" __global__
void entry(const float *__restrict__ A,   // the left one
           const float* B, float C[],
           const unsigned int M, size_t N, long long K, float alpha)
{
    extern __shared__ float staged[];
    staged[0] = twice(A);
}
"""


def kernel(source: str = SEVERAL, entry: str = "entry", path: str = PATH) -> Kernel:
    """A kernel with this source, without its front matter."""
    return Kernel(
        name="mine", summary="", launch=LaunchRules(block=(1,), grid=(1,)), entry=entry,
        source=source, path=path, parameters=signature.parameters(source, entry),
    )  # fmt: skip


def lines_of_the_kernel(unit: str, path: str = PATH) -> list[str]:
    """What follows `#line 1 "path"`: the compiler counts these."""
    _, body = unit.split(f'#line 1 "{path}"\n')
    return body.splitlines()
