"""cuBLAS calls as programs like those of compiled kernels, through nvmath-python's bindings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from matbench.backends.protocol import Argument, UnavailableError
from matbench.errors import CaseError
from matbench.model import Kernel, Launch, Precision, Resources

#: For each declared precision: the types of the inputs, of C, and of the computation. In float32,
#: cuBLAS does not round inputs to TF32 unless it is told to.
KINDS: dict[Precision, tuple[str, str, str]] = {
    "float32": ("CUDA_R_32F", "CUDA_R_32F", "COMPUTE_32F"),
    "tf32": ("CUDA_R_32F", "CUDA_R_32F", "COMPUTE_32F_FAST_TF32"),
    "bfloat16": ("CUDA_R_16BF", "CUDA_R_32F", "COMPUTE_32F"),
    "float16": ("CUDA_R_16F", "CUDA_R_16F", "COMPUTE_32F"),
    "float64": ("CUDA_R_64F", "CUDA_R_64F", "COMPUTE_64F"),
    "e4m3": ("CUDA_R_8F_E4M3", "CUDA_R_16BF", "COMPUTE_32F"),
    "int8": ("CUDA_R_8I", "CUDA_R_32I", "COMPUTE_32I"),
}
#: What cuBLAS would allocate itself on a Hopper GPU. With our own workspace nothing is allocated
#: during stream capture; one workspace on one stream makes results reproducible.
WORKSPACE_BYTES = 32 * 1024**2


def missing() -> UnavailableError | None:
    """What is not installed and how to fix it; None if the bindings are installed."""
    if find_spec("nvmath") is None:
        return UnavailableError("nvmath-python is missing", "pip install 'matbench-cuda[cuda]'")
    return None


def unusable() -> dict[str, str]:
    """Why neither cuBLAS nor cuBLASLt can be used, by the library's name; empty if they can."""
    reason = missing()
    return {} if reason is None else dict.fromkeys(("cublas", "cublaslt"), str(reason))


class Library:
    """One cuBLAS handle on the current context; its stream and workspace are set once.

    It is a handle of cuBLASLt, too, which takes stream and workspace with each call. What is made
    for such calls is `held` until the end.
    """

    def __init__(self, stream: int, workspace: int) -> None:
        try:
            import nvmath
            from nvmath.bindings import cublas
        except ImportError as error:
            raise CaseError(f"nvmath-python cannot be used ({error})") from None
        self.cublas = cublas
        self.types = nvmath.CudaDataType
        self.stream, self.workspace = stream, workspace
        self.held = contextlib.ExitStack()
        try:
            self.handle = cublas.create()
            cublas.set_stream(self.handle, stream)
            cublas.set_workspace(self.handle, workspace, WORKSPACE_BYTES)
            # Add partial sums over K in float32 even if C is narrower.
            cublas.set_math_mode(self.handle, cublas.Math.DISALLOW_REDUCED_PRECISION_REDUCTION)
            parts = [cublas.get_property(part) for part in nvmath.LibraryPropertyType]
        except (cublas.cuBLASError, RuntimeError) as error:  # RuntimeError: not found
            raise CaseError(f"cuBLAS: {error}") from None
        self.version = "cuBLAS " + ".".join(map(str, parts))

    def program(self, kernel: Kernel) -> LibraryCall:
        return DotProduct(self) if kernel.workload == "dot" else CublasProduct(self, kernel)

    def call(self, function: Callable[..., object], *values: object) -> None:
        """Call a function; a failure is a `CaseError`."""
        try:
            function(*values)
        except self.cublas.cuBLASError as error:
            raise CaseError(f"cuBLAS: {error}", fatal=True) from None

    def close(self) -> None:
        self.held.close()
        with contextlib.suppress(self.cublas.cuBLASError):  # the device may be lost
            self.cublas.destroy(self.handle)


class LibraryCall:
    """A program that calls the library."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.resources = Resources(library=library.version)
        self.allocates, self.variable_bytes = False, 0
        self.warnings: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()

    def restore(self) -> None:
        pass  # the library's state is its own

    def reload(self) -> None:
        pass  # as is the place of its code

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        """The call with its arguments."""
        raise NotImplementedError

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        self.bound(launch, arguments)()

    def resident_blocks(self, launch: Launch) -> int | None:
        return None  # the library chooses its launches


class CublasProduct(LibraryCall):
    """C := alpha·A·B + beta·C, row-major, by cublasGemmEx, or its strided batched variant."""

    def __init__(self, library: Library, kernel: Kernel) -> None:
        super().__init__(library)
        inputs, result, compute = KINDS[kernel.precision]
        self.inputs, self.result = (getattr(library.types, kind) for kind in (inputs, result))
        self.compute = getattr(library.cublas.ComputeType, compute)
        self.is_double = kernel.precision == "float64"

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        """cuBLAS is column-major and sees row-major matrices as transposed, so it is asked for
        Cᵀ = Bᵀ·Aᵀ."""
        import numpy as np

        values: list[Any] = [getattr(argument, "handle", argument) for argument in arguments]
        A, B, C, M, N, K, alpha, beta, batch = values
        cublas, as_it_is = self.library.cublas, self.library.cublas.Operation.N
        scales = np.array([alpha, beta], np.float64 if self.is_double else np.float32)
        at_alpha = scales.ctypes.data
        at_beta = at_alpha + scales.itemsize
        common = (self.library.handle, as_it_is, as_it_is, N, M, K, at_alpha)
        kinds = (self.compute, cublas.GemmAlgo.DFALT)
        if batch == 1:
            call = cublas.gemm_ex
            asked: tuple[Any, ...] = (
                *(*common, B, self.inputs, N, A, self.inputs, K, at_beta),
                *(C, self.result, N, *kinds),
            )
        else:
            call = cublas.gemm_strided_batched_ex
            asked = (
                *(*common, B, self.inputs, N, K * N, A, self.inputs, K, M * K, at_beta),
                *(C, self.result, N, M * N, batch, *kinds),
            )

        def enqueue() -> None:
            assert scales.size == 2  # the call reads them, so they must live as long as it
            self.library.call(call, *asked)

        return enqueue


class DotProduct(LibraryCall):
    """c = Σ aᵢ·bᵢ by cublasSdot, which leaves the result on the device."""

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        A, B, C, N = (getattr(a, "handle", a) for a in arguments)
        library, cublas = self.library, self.library.cublas

        def enqueue() -> None:
            library.call(cublas.set_pointer_mode, library.handle, cublas.PointerMode.DEVICE)
            library.call(cublas.sdot, library.handle, N, A, 1, B, 1, C)
            library.call(cublas.set_pointer_mode, library.handle, cublas.PointerMode.HOST)

        return enqueue
