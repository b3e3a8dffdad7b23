// An extension for PyTorch: the element type is that of a tensor.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#define BLOCK_ROWS 12
#define BLOCK_COLS 20

template <typename scalar_t>
__global__ void linear_forward_kernel(const scalar_t *__restrict__ input,
                                      const scalar_t *__restrict__ weight,
                                      scalar_t *__restrict__ output, const int64_t rows,
                                      const int64_t inner, const int64_t cols)
{
    const int64_t r = blockIdx.y * BLOCK_ROWS + threadIdx.y;
    const int64_t c = blockIdx.x * BLOCK_COLS + threadIdx.x;
    if (r >= rows || c >= cols)
        return;
    scalar_t acc = 0;
    for (int64_t i = 0; i < inner; ++i)
        acc += input[r * inner + i] * weight[c * inner + i];
    output[r * cols + c] = acc;
}

torch::Tensor linear_forward(torch::Tensor input, torch::Tensor weight)
{
    TORCH_CHECK(input.is_cuda(), "input must be on the GPU");
    const at::cuda::OptionalCUDAGuard guard(device_of(input));
    const auto rows = input.size(0), inner = input.size(1), cols = weight.size(0);
    auto output = torch::empty({rows, cols}, input.options());
    const dim3 threads(BLOCK_COLS, BLOCK_ROWS);
    const dim3 blocks((cols + threads.x - 1) / threads.x, (rows + threads.y - 1) / threads.y);
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "linear_forward", ([&] {
        linear_forward_kernel<scalar_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            input.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(),
            rows, inner, cols);
    }));
    return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &linear_forward); }
