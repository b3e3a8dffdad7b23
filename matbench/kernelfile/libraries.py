"""Baselines: kernels without a source, computed by a library routine."""

from __future__ import annotations

import hashlib

from matbench import workloads
from matbench.model import Kernel, LaunchRules, Parameter, Precision, WorkloadName


def _library(
    name: str,
    summary: str,
    *,
    function: str = "",
    workload: WorkloadName = workloads.DEFAULT,
    precision: Precision = "float32",
    inputs: str = "float",
    result: str = "float",
) -> Kernel:
    """A library routine as a kernel. The hash of `function` stands for that of a source in records.

    By default it is cuBLAS's general matrix product under this name.
    """
    computes = workloads.get(workload)
    library = name.split("-")[0]
    types = dict.fromkeys(computes.dimensions, "int") | dict.fromkeys(computes.reads, inputs)
    types["C"] = result
    arguments = computes.arguments
    if workload == workloads.DEFAULT and library != "numpy":
        arguments += ("alpha", "beta", "batch")
        types |= {"alpha": "double", "beta": "double", "batch": "int"}
    return Kernel(
        name=name,
        summary=summary,
        launch=LaunchRules(block=(1,), grid=(1,)),  # unknown: the library chooses
        workload=workload,
        group="baseline",
        args=arguments,
        requires=("host" if library == "numpy" else "cuda",),
        precision=precision,
        sha256=hashlib.sha256((function or f"cublasGemmEx {name}").encode()).hexdigest(),
        parameters=tuple(
            Parameter(types.get(argument, "float"), argument, argument in computes.buffers)
            for argument in arguments
        ),
        library=library,
    )


NUMPY = _library(
    "numpy",
    "NumPy's float32 product, computed by its BLAS library",
    function="numpy.matmul",
)
CUBLAS_DOT = _library(
    "cublas-dot", "cuBLAS's float32 dot product", function="cublasSdot", workload="dot"
)
LIBRARIES = (
    NUMPY,
    CUBLAS_DOT,
    _library("cublas", "cuBLAS's float32 product, without rounding inputs to TF32"),
    _library("cublas-tf32", "cuBLAS's product of inputs rounded to TF32", precision="tf32"),
    _library(
        "cublas-bf16",
        "cuBLAS's product of bfloat16 inputs",
        precision="bfloat16",
        inputs="__nv_bfloat16",
    ),
    _library(
        "cublas-f16",
        "cuBLAS's product of float16 inputs; sums in float32, C in float16",
        precision="float16",
        inputs="__half",
        result="__half",
    ),
    _library(
        "cublas-f64",
        "cuBLAS's float64 product",
        precision="float64",
        inputs="double",
        result="double",
    ),
)
