#include <torch/extension.h>
#include <cuda_fp16.h>
#include <vector>
#include "helper_cuda.h"
using namespace torch;
using namespace nvcuda;
namespace own { constexpr int X = 3; }
torch::Tensor forward(torch::Tensor a) { mine<<<1, 2>>>(a); }
__device__ float half_of(float x) { asm volatile(""); return std::fma(x, 0.5f, 0.0f); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
