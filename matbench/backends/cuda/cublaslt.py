"""cuBLASLt's products as programs: by the algorithm that it suggests first, or by the fastest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from matbench.backends.cuda.cublas import KINDS, WORKSPACE_BYTES, Library, LibraryCall
from matbench.backends.protocol import Argument, Backend, Buffer
from matbench.errors import CaseError
from matbench.model import SCALE_OF, Kernel, Launch

#: The time of what is enqueued, in nanoseconds.
Clock = Callable[[Callable[[], None]], float]
#: The type of sums, alpha and beta by that of the computation, and NumPy's; others are in float32.
_SUMS = {"COMPUTE_64F": ("CUDA_R_64F", "f8"), "COMPUTE_32I": ("CUDA_R_32I", "i4")}
#: How many of the suggested algorithms are timed if the fastest is wanted.
MOST_ALGORITHMS = 16
#: Timing in turns ends after this many rounds, or as soon as it took long enough.
_LEAST_ROUNDS, _MOST_ROUNDS = 3, 20
_ENOUGH_NS = 0.2e9
#: What takes this many times as long as the fastest is then not timed again.
_TOO_SLOW = 1.25


class Plan(NamedTuple):
    """One product as cuBLASLt is asked for it: handles, and alpha and beta in host memory."""

    description: int
    B: int
    A: int
    C: int
    factors: Any
    algorithm: Any = None
    notes: tuple[str, ...] = ()


class CublasLtProduct(LibraryCall):
    """C := alpha·A·B + beta·C, row-major, by cublasLtMatmul; for 8-bit operands, B is transposed.

    If the kernel is `cublaslt-best…`, the algorithm is the fastest of the first that are suggested.
    They are timed by `cold_ns` before the first launch of a product, with its buffers.
    """

    def __init__(self, library: Library, kernel: Kernel, backend: Backend, cold_ns: Clock) -> None:
        super().__init__(library)
        try:
            from nvmath.bindings import cublasLt
        except ImportError as error:
            raise CaseError(f"nvmath-python cannot be used ({error})") from None
        self.lt = cublasLt
        self.kernel = kernel
        self.backend = backend
        self.cold_ns = cold_ns
        inputs, result, compute = KINDS[kernel.precision]
        self.inputs, self.result = (getattr(library.types, kind) for kind in (inputs, result))
        self.compute = getattr(library.cublas.ComputeType, compute)
        sums, self.number = _SUMS.get(compute, ("CUDA_R_32F", "f4"))
        self.sums = getattr(library.types, sums)
        self.is_best = kernel.name.startswith("cublaslt-best")
        self.plans: dict[tuple[int | float, ...], Plan] = {}

    def bound(self, launch: Launch, arguments: Sequence[Argument]) -> Callable[[], None]:
        named: dict[str, Any] = dict(zip(self.kernel.args, arguments, strict=True))
        sizes = [int(named.get(name, 1)) for name in ("M", "N", "K", "batch")]
        factors = [float(named.get("alpha", 1.0)), float(named.get("beta", 0.0))]
        key = *sizes, *factors
        if key not in self.plans:
            self.plans[key] = self._chosen(self._described(sizes, factors), named)
        plan = self.plans[key]
        self.notes = plan.notes
        return self._launcher(plan, named)

    def _described(self, sizes: Sequence[int], factors: Sequence[float]) -> Plan:
        """A product without an algorithm.

        cuBLASLt is column-major and sees row-major matrices as transposed, so it is asked for
        Cᵀ = Bᵀ·Aᵀ: its first operand is B.
        """
        import numpy as np

        M, N, K, batch = sizes
        lt, attribute = self.lt, self.lt.MatmulDescAttribute
        with self._errors(fatal=False):
            made = lt.matmul_desc_create(self.compute, self.sums)
            self.library.held.callback(lt.matmul_desc_destroy, made)
            is_turned = self.kernel.transpose == "NT"
            if is_turned:
                self._describe(made, attribute.TRANSA, self.library.cublas.Operation.T)
            if self.kernel.accumulator == "float22":
                self._describe(made, attribute.FAST_ACCUM, 1)
            if self.kernel.scales == "rows":
                for which in (attribute.A_SCALE_MODE, attribute.B_SCALE_MODE):
                    self._describe(made, which, lt.MatmulMatrixScale.OUTER_VEC_32F)
            return Plan(
                made,
                self._layout(self.inputs, *((K, N) if is_turned else (N, K)), batch),
                self._layout(self.inputs, K, M, batch),
                self._layout(self.result, N, M, batch),
                np.array(factors, self.number),
            )

    def _describe(self, description: int, which: Any, value: int) -> None:
        """Set an attribute of a product."""
        dtype = self.lt.get_matmul_desc_attribute_dtype(which)
        _set(self.lt.matmul_desc_set_attribute, description, which, dtype, value)

    def _layout(self, kind: Any, rows: int, columns: int, batch: int) -> int:
        """Column-major matrices, one after the other."""
        lt, attribute = self.lt, self.lt.MatrixLayoutAttribute
        layout = lt.matrix_layout_create(kind, rows, columns, rows)
        self.library.held.callback(lt.matrix_layout_destroy, layout)
        if batch > 1:
            for which, value in (
                (attribute.BATCH_COUNT, batch),
                (attribute.STRIDED_BATCH_OFFSET, rows * columns),
            ):
                dtype = lt.get_matrix_layout_attribute_dtype(which)
                _set(lt.matrix_layout_set_attribute, layout, which, dtype, value)
        return int(layout)

    def _chosen(self, plan: Plan, named: dict[str, Any]) -> Plan:
        """The product with an algorithm; the launches that choose it leave C as it was."""
        self._scaler(plan, named)()
        suggested = [plan._replace(algorithm=one) for one in self._algorithms(plan)]
        if not self.is_best:
            return suggested[0]
        with self._kept(named["C"]):
            launches = [self._launcher(one, named) for one in suggested]
            number = fastest(launches, self.cold_ns)
        note = f"algorithm {number + 1} of the {len(suggested)} that cuBLASLt suggests"
        return suggested[number]._replace(notes=(note,))

    def _algorithms(self, plan: Plan) -> list[Any]:
        """The algorithms that cuBLASLt suggests, the best first.

        Like `Library`, only those that add partial sums over K in the type of the sums.
        """
        import numpy as np

        lt, attribute = self.lt, self.lt.MatmulPreferenceAttribute
        scheme = lt.ReductionScheme
        wanted = MOST_ALGORITHMS if self.is_best else 1
        results, count = lt.MatmulHeuristicResult(wanted), np.zeros(1, np.int32)
        allowed = {
            attribute.MAX_WORKSPACE_BYTES: WORKSPACE_BYTES,
            attribute.REDUCTION_SCHEME_MASK: (
                scheme.MASK if self.result == self.sums else scheme.COMPUTE_TYPE
            ),
        }
        with self._errors(fatal=False):
            preference = lt.matmul_preference_create()
            self.library.held.callback(lt.matmul_preference_destroy, preference)
            for which, value in allowed.items():
                dtype = lt.get_matmul_preference_attribute_dtype(which)
                _set(lt.matmul_preference_set_attribute, preference, which, dtype, value)
            lt.matmul_algo_get_heuristic(
                *(self.library.handle, plan.description, plan.B, plan.A, plan.C, plan.C),
                *(preference, wanted, results.ptr, count.ctypes.data),
            )
        suggested = [results[number] for number in range(int(count[0]))]
        usable = [algorithm for algorithm in suggested if algorithm.state == 0]
        if not usable:
            raise CaseError("cuBLASLt: it has no algorithm for this product")
        return usable

    def _scaler(self, plan: Plan, named: dict[str, Any]) -> Callable[[], None]:
        """What says where the factors of A and B are, if there are any; it takes little time."""
        import numpy as np

        attribute, set_attribute = self.lt.MatmulDescAttribute, self.lt.matmul_desc_set_attribute
        words = []
        if self.kernel.scales is not None:
            for which, name in (
                (attribute.A_SCALE_POINTER, SCALE_OF["B"]),
                (attribute.B_SCALE_POINTER, SCALE_OF["A"]),
            ):
                dtype = self.lt.get_matmul_desc_attribute_dtype(which)
                word = np.array([named[name].handle], dtype)
                words.append((which, word, word.ctypes.data))

        def scale() -> None:
            for which, word, address in words:
                set_attribute(plan.description, which, address, word.nbytes)

        return scale

    def _launcher(self, plan: Plan, named: dict[str, Any]) -> Callable[[], None]:
        A, B, C = (named[name].handle for name in "ABC")
        at_alpha = plan.factors.ctypes.data
        at_beta = at_alpha + plan.factors.itemsize
        library, algorithm = self.library, plan.algorithm
        scale = self._scaler(plan, named)
        asked = (
            *(library.handle, plan.description, at_alpha, B, plan.B, A, plan.A, at_beta),
            *(C, plan.C, C, plan.C, algorithm.ptr),
            *(library.workspace, WORKSPACE_BYTES, library.stream),
        )

        def enqueue() -> None:
            with self._errors():
                scale()
                self.lt.matmul(*asked)

        return enqueue

    @contextlib.contextmanager
    def _kept(self, C: Buffer) -> Iterator[None]:
        """Restore C afterwards."""
        copy = self.backend.allocate(C.nbytes)
        try:
            self.backend.copy(copy, C)
            yield
            self.backend.copy(C, copy)
            self.backend.synchronize()
        finally:
            self.backend.release(copy)

    @contextlib.contextmanager
    def _errors(self, *, fatal: bool = True) -> Iterator[None]:
        try:
            yield
        except self.lt.cuBLASLtError as error:
            raise CaseError(f"cuBLASLt: {error}", fatal=fatal) from None


def _set(function: Callable[..., object], made: int, which: Any, dtype: Any, value: int) -> None:
    """Set an attribute through a function of cuBLASLt, which takes the address of the value."""
    import numpy as np

    word = np.array([value], dtype)
    function(made, which, word.ctypes.data, word.nbytes)


def fastest(launches: Sequence[Callable[[], None]], time_ns: Clock) -> int:
    """The number of the launch with the least median time; they are timed in turns."""
    for launch in launches:
        time_ns(launch)  # loads its code
    taken: list[list[float]] = [[] for _ in launches]
    left, spent_ns = list(range(len(launches))), 0.0
    for turn in range(1, _MOST_ROUNDS + 1):
        for number in left:
            taken[number].append(time_ns(launches[number]))
            spent_ns += taken[number][-1]
        is_known, is_long = turn >= _LEAST_ROUNDS, spent_ns >= _ENOUGH_NS
        medians = {number: median(taken[number]) for number in left}
        if is_known or is_long:
            least = min(medians.values())
            left = [number for number in left if medians[number] <= _TOO_SLOW * least]
        if len(left) == 1 or (is_known and is_long):
            break
    return min(left, key=medians.__getitem__)
