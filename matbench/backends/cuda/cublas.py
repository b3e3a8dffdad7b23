"""cuBLAS calls as programs, like compiled kernels, through nvmath-python's bindings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from matbench.backends.protocol import Argument
from matbench.errors import CaseError
from matbench.model import Kernel, Launch, Precision, Resources

#: For each precision that a product declares: the inputs' type, and what it is computed in. C is
#: float32 and so is the sum; in float32 cuBLAS rounds no input to TF32 unless it is asked to.
_KINDS: dict[Precision, tuple[str, str]] = {
    "float32": ("CUDA_R_32F", "COMPUTE_32F"),
    "tf32": ("CUDA_R_32F", "COMPUTE_32F_FAST_TF32"),
    "bfloat16": ("CUDA_R_16BF", "COMPUTE_32F"),
}
#: What cuBLAS would allocate itself on a Hopper GPU. A workspace of our own means no allocation
#: while a stream is captured; one workspace on one stream makes results the same in every run.
WORKSPACE_BYTES = 32 * 1024**2


def missing() -> str | None:
    """What is not installed and how to fix it; None if the bindings are there."""
    if find_spec("nvmath") is None:
        return "nvmath-python is missing; pip install 'matbench-cuda[cuda]'"
    return None


class Library:
    """One cuBLAS handle on the current context; its stream and workspace are set once."""

    def __init__(self, stream: int, workspace: int) -> None:
        try:
            import nvmath
            from nvmath.bindings import cublas
        except ImportError as error:
            raise CaseError(f"nvmath-python cannot be used ({error})") from None
        self.cublas = cublas
        self.types = nvmath.CudaDataType
        try:
            self.handle = cublas.create()
            cublas.set_stream(self.handle, stream)
            cublas.set_workspace(self.handle, workspace, WORKSPACE_BYTES)
            parts = [cublas.get_property(part) for part in nvmath.LibraryPropertyType]
        except (cublas.cuBLASError, RuntimeError) as error:  # RuntimeError: it is not found
            raise CaseError(f"cuBLAS: {error}") from None
        self.version = "cuBLAS " + ".".join(map(str, parts))

    def program(self, kernel: Kernel) -> Call:
        return DotProduct(self) if kernel.workload == "dot" else Product(self, kernel)

    def call(self, function: Callable[..., object], *values: object) -> None:
        """A call whose failure is a `CaseError`."""
        try:
            function(*values)
        except self.cublas.cuBLASError as error:
            raise CaseError(f"cuBLAS: {error}", fatal=True) from None

    def close(self) -> None:
        with contextlib.suppress(self.cublas.cuBLASError):  # the device may be lost
            self.cublas.destroy(self.handle)


class Call:
    """A program that calls the library, with its handle."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.resources = Resources(library=library.version)
        self.allocates = self.has_variables = False

    def restore(self) -> None:
        pass  # what a library keeps is its own affair

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        """The call with its arguments."""
        raise NotImplementedError

    def launch(self, launch: Launch, arguments: Sequence[Argument]) -> None:
        self.bound(launch, arguments)()

    def resident_blocks(self, launch: Launch) -> int | None:
        return None  # its launches are its own choice


class Product(Call):
    """C = A·B, row-major, by cublasGemmEx."""

    def __init__(self, library: Library, kernel: Kernel) -> None:
        import numpy as np

        super().__init__(library)
        inputs, compute = _KINDS[kernel.precision]
        self.inputs = getattr(library.types, inputs)
        self.compute = getattr(library.cublas.ComputeType, compute)
        self.one, self.zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        """cuBLAS reads matrices by columns; row-major ones look transposed to it, so it is asked
        for Cᵀ = Bᵀ·Aᵀ."""
        A, B, C, M, N, K = (getattr(a, "handle", a) for a in arguments)
        cublas, inputs = self.library.cublas, self.inputs
        as_it_is = cublas.Operation.N
        values = (
            *(self.library.handle, as_it_is, as_it_is, N, M, K, self.one.ctypes.data),
            *(B, inputs, N, A, inputs, K, self.zero.ctypes.data),
            *(C, self.library.types.CUDA_R_32F, N, self.compute, cublas.GemmAlgo.DFALT),
        )
        return lambda: self.library.call(cublas.gemm_ex, *values)


class DotProduct(Call):
    """c = Σ aᵢ·bᵢ by cublasSdot, which leaves the result on the device."""

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        A, B, C, N = (getattr(a, "handle", a) for a in arguments)
        library, cublas = self.library, self.library.cublas

        def enqueue() -> None:
            library.call(cublas.set_pointer_mode, library.handle, cublas.PointerMode.DEVICE)
            library.call(cublas.sdot, library.handle, N, A, 1, B, 1, C)
            library.call(cublas.set_pointer_mode, library.handle, cublas.PointerMode.HOST)

        return enqueue
