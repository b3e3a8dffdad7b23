"""cuBLAS and cuBLASLt on the host: a library built of `cublas.cpp`, in place of NVIDIA's."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from matbench.backends.cuda import cublas
from matbench.backends.functions import libraries
from matbench.backends.protocol import Array, Handle, Work
from matbench.cache import Cache
from matbench.kernelfile import catalogue
from matbench.model import Kernel, Launch

#: The baselines that call it.
BASELINES = {kernel.name: kernel for kernel in catalogue.builtin() if "cublas" in kernel.args}
[EMULATED] = [kernel for kernel in catalogue.builtin() if kernel.name == "cublas-f64-emulated"]
LAUNCH = Launch((1, 1, 1), (1, 1, 1))
STREAM = 22


class HostBuffer:
    """Memory of this process."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)
        self.handle, self.nbytes = self.array.ctypes.data, self.array.nbytes


class Fake:
    """The library, and what it needs of a backend; its clock reads the times of the algorithms."""

    def __init__(self, path: Path) -> None:
        self.memory = ctypes.CDLL(str(path))
        self.held: list[HostBuffer] = []
        self.taken_ns = [1.0]
        self.set(algorithms=1, unusable=-1, failing=-1, fails=0, launches=0)

    def set(self, **values: int) -> None:
        for name, value in values.items():
            ctypes.c_int.in_dll(self.memory, name).value = value

    def __getitem__(self, name: str) -> int:
        return ctypes.c_int.in_dll(self.memory, name).value

    @property
    def launched(self) -> list[int]:
        """The algorithm of each launch of cuBLASLt, and how each of cuBLAS computes."""
        return [*(ctypes.c_int * 1000).in_dll(self.memory, "launched")][: self["launches"]]

    def allocate(self, nbytes: int, *, is_given: bool = False) -> HostBuffer:
        self.held.append(HostBuffer(np.zeros(nbytes, np.uint8)))
        return self.held[-1]

    def release(self, buffer: HostBuffer) -> None:
        self.held.remove(buffer)

    def timed_ns(self, work: Work) -> float:
        work.calls[0].run()
        return self.taken_ns[self.launched[-1]]

    def library(self) -> cublas.Library:
        backend: Any = self
        return cublas.Library(backend, STREAM)


class Ready:
    """A baseline's program, and small matrices that it multiplies: M, N, K = 2, 3, 4."""

    def __init__(self, name: str, fake: Fake) -> None:
        self.kernel: Kernel = BASELINES[name]
        self.fake = fake
        self.program = cublas.Baseline(fake.library(), self.kernel, {}, Cache())

    def launch(self, A: Any, B: Any, C: Any, *, scales: Any = (), **numbers: float) -> Any:
        """Launch once on copies of A and B, and on C; the result."""
        named: dict[str, Any] = {"M": 2, "N": 3, "K": 4, "alpha": 1.0, "beta": 0.0, "batch": 1}
        named |= {name: Handle(name) for name in ("cublas", "stream")}
        named |= {"A": HostBuffer(A.copy()), "B": HostBuffer(B.copy()), "C": HostBuffer(C)}
        named |= dict(zip(("scale_a", "scale_b"), map(HostBuffer, scales), strict=False))
        named |= numbers
        arguments: list[Any] = [
            Array(named[name], "float32", (), ())
            if isinstance(named[name], HostBuffer)
            else named[name]
            for name in self.kernel.args
        ]
        self.program.launch(LAUNCH, arguments)
        assert (named["A"].array == A).all()
        assert (named["B"].array == B).all()
        return named["C"].array


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """The library where NVIDIA's would be; built once, so that what links with it is, too."""
    source = Path(__file__).with_suffix(".cpp")
    folder = Path(Cache().folder) / "fake"
    text = source.read_text()
    made = libraries.made(libraries.host_target(), [], [], text, source.name, Cache())
    folder.mkdir(exist_ok=True)
    path = folder / "libcublas.so"
    if not path.exists() or path.read_bytes() != made:
        (new := folder / f"{id(made)}.so").write_bytes(made)
        new.replace(path)
    found = SimpleNamespace(load_nvidia_dynamic_lib=lambda _: SimpleNamespace(abs_path=str(path)))
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(pathfinder=found))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", found)
    monkeypatch.setattr(cublas, "place", cublas.place.__wrapped__)
    return Fake(path)
