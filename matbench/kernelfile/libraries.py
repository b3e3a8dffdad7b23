"""Baselines: kernels without a source, whose product a library computes."""

from __future__ import annotations

import hashlib

from matbench import workloads
from matbench.model import Kernel, LaunchRules, Parameter, Precision


def _library(
    name: str,
    summary: str,
    library: str,
    function: str,
    *,
    requires: str = "cuda",
    workload: str = workloads.DEFAULT,
    precision: Precision = "float32",
    inputs: str = "float",
) -> Kernel:
    """`function` stands for the source: a result of another one is another kernel's."""
    computes = workloads.get(workload)
    buffers = [
        Parameter("float" if buffer == "C" else inputs, buffer, pointer=True)
        for buffer in computes.buffers
    ]
    sizes = [Parameter("int", size, pointer=False) for size in computes.dimensions]
    return Kernel(
        name=name,
        summary=summary,
        launch=LaunchRules(block=(1,), grid=(1,)),  # a library chooses its own, and does not say
        workload=workload,
        group="baseline",
        args=computes.arguments,
        requires=(requires,),
        precision=precision,
        sha256=hashlib.sha256(function.encode()).hexdigest(),
        parameters=(*buffers, *sizes),
        library=library,
    )


NUMPY = _library(
    "numpy",
    "NumPy's float32 product, by the BLAS library that it was built with",
    "numpy",
    "numpy.matmul",
    requires="host",
)
CUBLAS = _library(
    "cublas",
    "cuBLAS's float32 product, its inputs not rounded to TF32",
    "cublas",
    "cublasGemmEx cublas",
)
CUBLAS_TF32 = _library(
    "cublas-tf32",
    "cuBLAS's product of inputs rounded to TF32",
    "cublas",
    "cublasGemmEx cublas-tf32",
    precision="tf32",
)
CUBLAS_BF16 = _library(
    "cublas-bf16",
    "cuBLAS's product of bfloat16 inputs",
    "cublas",
    "cublasGemmEx cublas-bf16",
    precision="bfloat16",
    inputs="__nv_bfloat16",
)
CUBLAS_DOT = _library(
    "cublas-dot", "cuBLAS's float32 dot product", "cublas", "cublasSdot", workload="dot"
)
LIBRARIES = (NUMPY, CUBLAS, CUBLAS_TF32, CUBLAS_BF16, CUBLAS_DOT)
