// A PyTorch extension: the kernels and their host functions in one file.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

using torch::Tensor;

constexpr int TILE_ROWS = 8;
constexpr int TILE_COLS = 24;

template <typename scalar_t>
__global__ void matmul_forward_kernel(const scalar_t *__restrict__ input,
                                      const scalar_t *__restrict__ weight,
                                      scalar_t *__restrict__ output, const int64_t batch_size,
                                      const int64_t in_features, const int64_t out_features)
{
    const int64_t row = blockIdx.x * TILE_ROWS + threadIdx.x / TILE_COLS;
    const int64_t col = blockIdx.y * TILE_COLS + threadIdx.x % TILE_COLS;
    if (row >= batch_size || col >= out_features)
        return;
    scalar_t acc = 0;
    for (int64_t k = 0; k < in_features; ++k)
        acc += input[row * in_features + k] * weight[k * out_features + col];
    output[row * out_features + col] = acc;
}

torch::Tensor matmul_forward(torch::Tensor input, torch::Tensor weight)
{
    CHECK_INPUT(input);
    CHECK_INPUT(weight);
    const at::cuda::OptionalCUDAGuard guard(device_of(input));
    const auto rows = input.size(0);
    const auto inner = input.size(1);
    const auto cols = weight.size(1);
    auto output = torch::zeros({rows, cols}, input.options());
    const int threads = TILE_ROWS * TILE_COLS;
    const dim3 blocks((rows + TILE_ROWS - 1) / TILE_ROWS, at::ceil_div<int64_t>(cols, TILE_COLS));
    AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "matmul_forward", ([&] {
        matmul_forward_kernel<scalar_t>
            <<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                input.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(),
                output.data_ptr<scalar_t>(), rows, inner, cols);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.def("forward", &matmul_forward, "Matrix product (CUDA)");
}
