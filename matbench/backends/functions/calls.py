"""A function as a program, and one call of it on a CUDA device or on a CPU."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from matbench.backends.functions.arrays import Arrays, on_host
from matbench.backends.functions.loading import Originals, blaming, loaded
from matbench.backends.protocol import Address, Argument, Array, Backend, Call, Function
from matbench.errors import BuildError
from matbench.kernelfile import host_file
from matbench.kernelfile.python_file import RETURNED
from matbench.model import SCALE_OF, WORKSPACE, Kernel, Launch, Params, Resources

_clock_ns = time.perf_counter_ns
_HOOKS = (sys.getprofile, sys.setprofile), (sys.gettrace, sys.settrace)
#: Of this process, before it loads a function.
_originals = functools.cache(Originals)
_LONG_S = 0.1
#: What arrays of all libraries have. One that is returned is the result, also beside a C to fill.
_ARRAYS = "__array__", "__cuda_array_interface__"
_UNTOLD = "blocks are not timed, and `explain` needs a kernel file"
TRUSTED = f"trusted host code, not isolated; {_UNTOLD}"
ISOLATED = f"isolated in a process of its own; {_UNTOLD}"


class NotedFunction(Function):
    """A function that notes how it is isolated, the time of its first call, if that is long, and
    what it was built with."""

    kernel: Kernel
    isolation = TRUSTED
    #: Of its first call, which may trace and compile; None before it.
    first_call_s: float | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        notes = [self.isolation]
        if self.first_call_s is not None and self.first_call_s >= _LONG_S:
            notes.append(f"first call {self.first_call_s:.1f} s")
        if options := host_file.options(self.kernel):
            notes.append(f"built with {' '.join(options)}")
        return tuple(notes)


class CalledFunction(NotedFunction):
    """A function that is called with arrays over a device's memory; what it keeps is its own."""

    def __init__(self, kernel: Kernel, arrays: Arrays, backend: Backend) -> None:
        self.replaced = _originals().replaced
        self.kernel, self.arrays, self.backend = kernel, arrays, backend
        buffers = [text for text in kernel.args if text in (*"ABC", WORKSPACE, *SCALE_OF.values())]
        #: Where C is among what it gets, and whether that is a parameter.
        self.index_of_C = buffers.index("C")
        self.fills_C = RETURNED not in (parameter.name for parameter in kernel.parameters)
        self.resources = Resources(library=arrays.version)
        self.used_bytes = arrays.used_bytes

    def prepared(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Callable[[], Any]:
        """What calls the function with these arrays, and what it returns."""
        raise NotImplementedError

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        one = OneCall(self, arguments)
        return Call(one.run, one.take, one.give, runs_on_host=True)


class PythonFunction(CalledFunction):
    """A function in a Python file, which takes arrays of the host or those that are made."""

    def __init__(
        self,
        kernel: Kernel,
        params: Params,
        backend: Backend,
        made: Callable[[Kernel], Arrays] = on_host,
    ) -> None:
        with blaming(kernel, BuildError):
            super().__init__(kernel, made(kernel), backend)
            self.function = loaded(kernel)
        _unhook()
        taken = inspect.signature(self.function).parameters
        #: The numbers among its arguments that it takes by name, and its constants.
        numbers = [not parameter.pointer for parameter in kernel.parameters]
        self.names = [(i, n) for i, n in enumerate(kernel.args) if numbers[i] and n in taken]
        self.constants = params

    def prepared(self, arrays: Sequence[Any], arguments: Sequence[Argument]) -> Callable[[], Any]:
        named = {name: arguments[index] for index, name in self.names}
        return functools.partial(self.function, *arrays, **named, **self.constants)


def _unhook() -> None:
    """Remove what a user's code left to be called with matbench's own functions, untimed."""
    for present, replace in _HOOKS:
        if present() is not None:  # to ask takes less of the timed interval
            replace(None)


class OneCall:
    """A call with some arguments, which may be made again."""

    def __init__(self, function: CalledFunction, arguments: Sequence[Argument]) -> None:
        self.function = function
        self.arguments = arguments
        matrices = [argument for argument in arguments if isinstance(argument, Array)]
        self.C = matrices[function.index_of_C]
        self.matrices = matrices if function.fills_C else matrices[:-1]
        self.places = [function.backend.mapped(matrix.matrix) for matrix in self.matrices]
        self.once = None if function.arrays.is_late else self._prepared()
        self.result = self.places[function.index_of_C] if function.fills_C else Address(0, None)

    def _prepared(self) -> Callable[[], Any]:
        function = self.function
        with blaming(function.kernel):
            arrays = [
                function.arrays.array(matrix, place.value)
                for matrix, place in zip(self.matrices, self.places, strict=True)
            ]
            return function.prepared(arrays, self.arguments)

    def run(self) -> None:
        function = self.function
        with function.arrays.running():
            once = self.once or self._prepared()
            started = _clock_ns()
            with blaming(function.kernel):  # an error names the line of its file
                returned = once()
                if function.first_call_s is None:
                    function.first_call_s = (_clock_ns() - started) / 1e9
                if not function.fills_C or any(hasattr(returned, name) for name in _ARRAYS):
                    self.result = function.arrays.result(returned, self.C)
        _unhook()

    def take(self) -> None:
        self.function.backend.copy_apart(self.result.value, self.C.matrix.nbytes)

    def give(self) -> None:
        backend, places = self.function.backend, self.places
        self.once, self.places, self.result = None, [], Address(0, None)
        for place in places:
            backend.unmap(place)
        backend.copy_back(self.C.matrix)
