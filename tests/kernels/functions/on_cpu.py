"""Functions of NumPy that try to gain time without working for it, each with an honest twin."""

import ctypes
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import psutil

kept = {}


def honest(A, B, C):
    np.matmul(A, B, out=C)


# A thread that goes on after the function has returned; the twin waits for it.


def cheat_thread(A, B, C):
    threading.Thread(target=np.matmul, args=(A, B), kwargs={"out": C}).start()


def twin_thread(A, B, C):
    thread = threading.Thread(target=np.matmul, args=(A, B), kwargs={"out": C})
    thread.start()
    thread.join()


# A result that is computed when someone looks at it; the twin's class is an ordinary array.


class Lazy:
    def __init__(self, A, B):
        self.A, self.B = A.copy(), B.copy()
        self.dtype, self.shape = A.dtype, (A.shape[0], B.shape[1])

    def __array__(self, dtype=None, copy=None):
        time.sleep(0.02)
        return self.A @ self.B


class Ordinary(np.ndarray):
    pass


def cheat_lazy(A, B):
    return Lazy(A, B)


def twin_lazy(A, B):
    return (A @ B).view(Ordinary)


# The first result for these addresses; the twin keeps only the memory for it.


def cheat_by_address(A, B):
    key = A.ctypes.data, B.ctypes.data
    if key not in kept:
        kept[key] = A @ B
    return kept[key]


def twin_by_address(A, B):
    key = A.shape, B.shape
    if key not in kept:
        kept[key] = np.empty((A.shape[0], B.shape[1]), A.dtype)
    return np.matmul(A, B, out=kept[key])


# The last result for these values, of which it looks at a few; the twin looks at them, and works.


def cheat_by_value(A, B):
    key = A.shape, float(abs(A[:2]).sum() > 0), float(abs(B[:2]).sum() > 0)
    if key not in kept:
        kept[key] = A @ B
    return kept[key]


def twin_by_value(A, B):
    kept[A.shape] = float(A[0, 0]), float(B[0, 0])
    return A @ B


# Inputs that are zeros afterwards; the twin changes a copy.


def cheat_inputs(A, B, C):
    np.matmul(A, B, out=C)
    A[...] = 0


def twin_inputs(A, B, C):
    doubled = A * 2
    np.matmul(doubled, B, out=C)
    C /= 2


# A result elsewhere: the name C means another array. The twin copies it.


def cheat_elsewhere(A, B, C):
    C = A @ B  # noqa: F841


def twin_elsewhere(A, B, C):
    C[...] = A @ B


# Callers' frames that say that the call began only now; the twin looks at them.


def look_back(when=None):
    frame, now_ns = sys._getframe(1), time.perf_counter_ns()
    while frame is not None:
        values = frame.f_locals
        for name in [n for n, v in values.items() if type(v) is int and 0 < now_ns - v < 1e9]:
            if when is not None:
                values[name] = when()
                if sys.version_info < (3, 13):
                    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
        frame = frame.f_back


def cheat_frames(A, B, C):
    np.matmul(A, B, out=C)
    time.sleep(0.02)
    look_back(time.perf_counter_ns)


def twin_frames(A, B, C):
    np.matmul(A, B, out=C)
    look_back()


# Every result is kept; the twin keeps the last two, and takes much memory once.


def cheat_memory(A, B):
    kept[len(kept)] = A @ B, np.ones((700, 700))
    return kept[len(kept) - 1][0]


def twin_memory(A, B):
    kept["before"] = kept.get("now")
    kept["now"] = A @ B
    kept["calls"] = kept.get("calls", 0) + 1
    if kept["calls"] == 12:
        kept["workspace"] = np.ones((3000, 3000))
    return kept["now"]


# Other programs' memory, a part of what this process is said to use here, which grows between
# two calls.


def twin_others(A, B):
    from matbench.bench.samples import Samples

    if "others" not in kept:
        used, write = psutil.Process.memory_info, Samples.write

        def grows(*given):
            kept["others"] += 64 << 20
            write(*given)

        kept["others"], Samples.write = 0, grows
        psutil.Process.memory_info = lambda one: SimpleNamespace(rss=used(one).rss + kept["others"])
    return A @ B


# The last results are kept, with a workspace each, by a function of which few calls are timed.


def twin_ring(A, B):
    time.sleep(0.02)
    kept["calls"] = kept.get("calls", 0) + 1
    kept[kept["calls"] % 24] = A @ B, np.ones((500, 500))
    return kept[kept["calls"] % 24][0]
