"""Baselines: kernels without a source, computed by a library routine."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from matbench import workloads
from matbench.model import SCALE_OF, Kernel, LaunchRules, Parameter, Scales, WorkloadName

_LAUNCH = LaunchRules(block=(1,), grid=(1,))  # unknown: the library chooses
_FACTORS = ("alpha", "beta", "batch")
_SCALES = tuple(SCALE_OF.values())


def _library(
    name: str,
    summary: str,
    *,
    function: str = "cublasGemmEx",
    workload: WorkloadName = workloads.DEFAULT,
    inputs: str = "float",
    result: str = "float",
    more: tuple[str, ...] = _FACTORS,
    **front: Any,
) -> Kernel:
    """A library routine as a kernel, which takes `more` than the arguments of its workload.

    By default it is cuBLAS's general matrix product. `front` has what else front matter says.
    """
    computes = workloads.get(workload)
    types = dict.fromkeys(computes.dimensions, "int") | dict.fromkeys(computes.reads, inputs)
    types |= {"C": result, "alpha": "double", "beta": "double", "batch": "int"}
    arguments = computes.arguments + more
    pointers = (*computes.buffers, *_SCALES)
    front = {"launch": _LAUNCH, "requires": ("cuda",), **front}
    return Kernel(
        name=name,
        summary=summary,
        workload=workload,
        group="baseline",
        args=arguments,
        sha256=_sha256(function, name),
        parameters=tuple(
            Parameter(types.get(argument, "float"), argument, argument in pointers)
            for argument in arguments
        ),
        library=name.split("-")[0],
        **front,
    )


def _sha256(function: str, name: str) -> str:
    """What stands for the hash of a source in records."""
    text = f"{function} {name}" if function in ("cublasGemmEx", "cublasLtMatmul") else function
    return hashlib.sha256(text.encode()).hexdigest()


def _multiples_of(number: int) -> LaunchRules:
    """What cuBLASLt requires of sizes: rows of 8-bit operands start at such addresses."""
    return msgspec.structs.replace(_LAUNCH, where=(f"N % {number} == 0", f"K % {number} == 0"))


def _fp8(name: str, summary: str, scales: Scales, architecture: str) -> Kernel:
    """A product of e4m3 as it is fastest: tensor cores keep few bits of its sums."""
    return _library(
        name,
        summary,
        function="cublasLtMatmul",
        precision="e4m3",
        inputs="__nv_fp8_e4m3",
        result="__nv_bfloat16",
        more=_SCALES,
        requires=("cuda", architecture),
        launch=_multiples_of(16),
        transpose="NT",
        accumulator="float22",
        scales=scales,
    )


def _fastest(product: Kernel) -> Kernel:
    """The same product by the fastest of cuBLASLt's algorithms."""
    _, _, kind = product.name.partition("-")
    name = f"cublaslt-best-{kind}" if kind else "cublaslt-best"
    words = product.summary.replace("cuBLAS's", "cuBLASLt's")
    return msgspec.structs.replace(
        product,
        name=name,
        summary=f"{words}; the fastest of its first 16 algorithms",
        library="cublaslt",
        sha256=_sha256("cublasLtMatmul", name),
    )


NUMPY = _library(
    "numpy",
    "NumPy's float32 product, computed by its BLAS library",
    function="numpy.matmul",
    more=(),
    requires=("host",),
)
CUBLAS_DOT = _library(
    "cublas-dot", "cuBLAS's float32 dot product", function="cublasSdot", workload="dot", more=()
)
_CUBLAS = (
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
_FP8 = _fp8("cublaslt-fp8", "cuBLASLt's product of e4m3 inputs; C in bfloat16", "matrix", "sm_89")
_FP8_BY_ROWS = _fp8(
    "cublaslt-fp8-rowwise",
    "cuBLASLt's product of e4m3 inputs, with a factor for each row of A and column of B; "
    "C in bfloat16",
    "rows",
    "sm_90",
)
_INT8 = _library(
    "cublaslt-int8",
    "cuBLASLt's product of int8 inputs; C in int32",
    function="cublasLtMatmul",
    precision="int8",
    inputs="signed char",
    result="int",
    more=(),
    requires=("cuda", "sm_75"),
    launch=_multiples_of(4),
    transpose="NT",
)
LIBRARIES = (
    NUMPY,
    CUBLAS_DOT,
    *_CUBLAS,
    *(_FP8, _FP8_BY_ROWS, _INT8),
    *map(_fastest, (*_CUBLAS, _FP8, _INT8)),
)
