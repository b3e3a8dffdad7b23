// Libraries' macros at file scope register what runs on the host.
#include <nvbench/nvbench.cuh>
#include <benchmark/benchmark.h>
#include <catch2/catch_test_macros.hpp>
#include "xla/ffi/api/ffi.h"
#include <thrust/device_vector.h>
DEFINE_int32(size, 1024, "rows and columns");
ABSL_FLAG(int, repetitions, 8, "how often");
#define NUMBER(name, value) constexpr uint32_t name = value;
NUMBER(ONE, 1);

template <int SIDE>
__global__ void registered(const float *a, const float *b, float *c, uint32_t m, uint32_t n, uint32_t k)
{
    const uint32_t row = blockIdx.y * SIDE + threadIdx.y, col = blockIdx.x * SIDE + threadIdx.x;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (uint32_t i = 0; i < k; i += ONE)
        sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}

void product(nvbench::state &state)
{
    int m = state.get_int64("M"), n = m, k = m;
    thrust::device_vector<float> a(m * k), b(k * n), c(m * n);
    state.exec([&](nvbench::launch &launch) {
        registered<16><<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 0, launch.get_stream()>>>(
            a.data().get(), b.data().get(), c.data().get(), m, n, k);
    });
}
NVBENCH_BENCH(product).add_int64_power_of_two_axis("M", nvbench::range(8, 12, 1));

class Fixture : public benchmark::Fixture {};
BENCHMARK_TEMPLATE(timed, float);
BENCHMARK(timed)->Range(8, 64)->Unit(benchmark::kMillisecond);
BENCHMARK_DEFINE_F(Fixture, timed)(benchmark::State &state) { for (auto _ : state) {} }
TEST_CASE("a product", "[gpu]")
{
    REQUIRE(product_is_right());
}
TEMPLATE_TEST_CASE("products", "[gpu]", int, float) { CHECK(true); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Product, ProductImpl,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<cudaStream_t>>().Arg<ffi::Buffer<ffi::F32>>(),
    {xla::ffi::Traits::kCmdBufferCompatible});
BENCHMARK_MAIN();
