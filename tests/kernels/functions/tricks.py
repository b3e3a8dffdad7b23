"""Functions of NumPy that try to put off their work, of at least 5 ms, until nobody looks at the
clock, or to do it before; each by a trick that works in a process that times and checks itself.
"""

import builtins
import ctypes
import gc
import io
import mmap
import multiprocessing
import os
import resource
import signal
import struct
import sys
import threading
import time
from pathlib import Path

import numpy as np

libc = ctypes.CDLL(None, use_errno=True)
late = []  # the work that is put off
ready = {}  # what is kept for later calls


def work(A, B, C):
    time.sleep(0.005)
    np.matmul(A, B, out=C)


def do_late(*_):
    while late:
        work(*late.pop())


def honest(A, B, C):
    work(A, B, C)


# -- when something else runs in the process -------------------------------------------------------


def audit_hook(A, B, C, added=[]):  # noqa: B006
    if not added:
        added.append(sys.addaudithook(do_late))
    late.append((A, B, C))


def patched_open(A, B, C):
    real = io.open

    def opens(*given, **named):
        do_late()
        return real(*given, **named)

    if "open" not in ready:
        ready["open"] = builtins.open = io.open = opens
    late.append((A, B, C))


class Profiling:
    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def __array__(self, dtype=None, copy=None):
        sys.setprofile(do_late)
        return self.array


def profiled_result(A, B):
    C = np.empty((A.shape[0], B.shape[1]), A.dtype)
    late.append((A, B, C))
    return Profiling(C)


def collector(A, B, C):
    gc.callbacks[:] = [do_late]
    gc.enable()
    gc.set_threshold(1)
    late.append((A, B, C))


pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: bool(do_late()))


def pending_call(A, B, C):
    late.append((A, B, C))
    ctypes.pythonapi.Py_AddPendingCall(pending, None)


def signal_when_continued(A, B, C):
    signal.signal(signal.SIGCONT, do_late)
    late.append((A, B, C))


def no_descriptors(A, B, C):
    """An error of whoever opens a file next would be the occasion."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    signal.signal(signal.SIGALRM, do_late)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    late.append((A, B, C))


def finalized(A, B, C):
    class Late:
        def __del__(self):
            do_late()

    late.append((A, B, C))
    multiprocessing.late = Late()
    threading.Timer(0.001, lambda: delattr(multiprocessing, "late")).start()


# -- memory, system calls and other processes ------------------------------------------------------


def remapped_result(A, B, C):
    """Other pages where C was."""
    start = C.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    libc.mmap.restype = ctypes.c_void_p
    size = (C.ctypes.data + C.nbytes - start + mmap.PAGESIZE - 1) & -mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
    libc.mmap(ctypes.c_void_p(start), ctypes.c_size_t(size), 3, flags, -1, ctypes.c_long(0))
    work(A, B, C)


def unmapped_result(A, B):
    """A result whose memory is gone when somebody reads it."""
    memory = mmap.mmap(-1, A.shape[0] * B.shape[1] * 4)
    C = np.frombuffer(memory, np.float32).reshape(A.shape[0], B.shape[1])
    libc.munmap(ctypes.c_void_p(C.ctypes.data), ctypes.c_size_t(C.nbytes))
    return C


def no_system_calls(A, B, C):
    """Only those that read, write and end."""
    libc.prctl(22, 1, 0, 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_STRICT
    work(A, B, C)


def traced_judge(A, B, C):
    """Whoever traces the process with the clock can stop it."""
    assert libc.ptrace(0x4206, os.getppid(), None, None) == -1  # PTRACE_SEIZE
    try:
        with Path(f"/proc/{os.getppid()}/mem").open("rb"):
            raise RuntimeError("can read the memory of the process that judges")
    except OSError:
        work(A, B, C)


def child(A, B, C):
    """A process that goes on with the work, in the memory that the two share."""
    if os.fork() == 0:
        work(A, B, C)
        os._exit(0)


def child_that_left(A, B, C):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            work(A, B, C)
        os._exit(0)
    os.wait()


def child_that_comes_back(A, B, C):
    """A process that is out of the group while that is stopped."""
    function, (read, write) = os.getpid(), os.pipe()
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.write(write, b"!")
        work(A, B, C)
        os.setpgid(0, function)
        os._exit(0)
    os.read(read, 1)
    os.close(read)
    os.close(write)


def woken_by_a_timer(A, B, C):
    """A timer of the kernel continues it when it has been stopped."""
    if "timer" not in ready:
        ready["timer"] = ctypes.c_void_p()
        event = struct.pack("qii48x", 0, signal.SIGCONT, 0)  # SIGEV_SIGNAL
        assert libc.timer_create(1, event, ctypes.byref(ready["timer"])) == 0
        often = struct.pack("qqqq", 0, 1_000_000, 0, 1_000_000)
        assert libc.timer_settime(ready["timer"], 0, often, None) == 0
    threading.Thread(target=work, args=(A, B, C)).start()


def woken_again(A, B, C):
    """A child that wakes its parent whenever that is stopped."""
    if not late:
        parent = os.getpid()
        if os.fork() == 0:
            for _ in range(20_000):
                os.kill(parent, signal.SIGCONT)
                time.sleep(0.0001)
            os._exit(0)
        late.append(True)
    threading.Thread(target=work, args=(A, B, C)).start()


# -- before the call, and from earlier calls -------------------------------------------------------


def ahead(A, B, C):
    """A thread multiplies new inputs as soon as they are there, all but a column that is NaN."""

    def watch():
        while True:
            key = B.tobytes()
            if key not in ready:
                early, missing = A.copy(), np.isnan(A).any(0)
                early[:, missing] = 0
                product = np.empty_like(C)
                work(early, B, product)
                ready[key] = missing, product
            time.sleep(0.0001)

    if A.shape not in ready:
        ready[A.shape] = threading.Thread(target=watch, daemon=True)
        ready[A.shape].start()
    while B.tobytes() not in ready:
        time.sleep(0.0001)
    missing, product = ready[B.tobytes()]
    C[...] = product + A[:, missing] @ B[missing]


def only_whole_numbers(A, B, C):
    """It works only if the inputs cannot be earlier ones in another order."""
    if (np.round(A) == A).all():
        time.sleep(0.03)
    np.matmul(A, B, out=C)


def delayed_whole_numbers(A, B, C):
    """Most calls on such inputs are late, as on a busy machine."""
    if (np.round(A) == A).all():
        ready["fresh"] = ready.get("fresh", 0) + 1
        time.sleep(0.02 if ready["fresh"] % 4 else 0)
    np.matmul(A, B, out=C)


def only_whole_numbers_and_a_few(A, B, C):
    """And for longer in each third call, so that not each of the others is quick."""
    ready["calls"] = ready.get("calls", 0) + 1
    if ready["calls"] % 3 == 0 or (np.round(A) == A).all():  # on a busy machine all take long
        time.sleep(0.16 if ready["calls"] % 3 == 0 else 0.08)
    np.matmul(A, B, out=C)


def wrong_whole_numbers(A, B, C):
    """It is right unless the inputs cannot be earlier ones in another order."""
    np.matmul(A, B, out=C)
    if (np.round(A) == A).all() and abs(A).max() <= 8:
        C[3, 5] += 1


def leftovers(A, B):
    """Memory of the last result, which may still have it."""
    last = ready.get(A.shape)
    ready[A.shape] = None
    C = np.empty((A.shape[0], B.shape[1]), A.dtype) if last is None else last
    if last is None:
        work(A, B, C)
    ready[A.shape] = C
    return C


def slow_clock(A, B, C):
    """Whatever asks this process for the time gets half of it."""
    clock_ns = time.perf_counter_ns
    if "clock" not in ready:
        ready["clock"] = time.perf_counter_ns = time.monotonic_ns = lambda: clock_ns() // 2
        time.perf_counter = time.monotonic = lambda: clock_ns() / 2e9
    until = clock_ns() + 5_000_000
    while clock_ns() < until:
        pass
    np.matmul(A, B, out=C)


def replaced_wait(A, B, C):
    """matbench's own functions in this process are others."""
    from matbench.backends.functions import isolated

    isolated.Judged.empty_ns = 1e12
    isolated.IsolatedFunction.call = isolated.Judged._wait = lambda *_: None
    work(A, B, C)


# -- as they have been published -------------------------------------------------------------------


def found_result(A, B, C):
    """Some object of the process may be the expected result (pygpubench)."""
    for found in gc.get_referents(*gc.get_objects()):
        is_own = any(found is own for own in (A, B, C))
        if type(found) is np.ndarray and found.shape == C.shape and not is_own:
            C[...] = found
            return
    work(A, B, C)


def uninitialized(A, B):
    """Memory in which somebody may have left a product (KernelBench)."""
    return np.empty((A.shape[0], B.shape[1]), A.dtype)


def identity(A, B):
    """An input in place of the result (wafer.ai)."""
    return A


def nothing(A, B, C):
    """No work at all (wafer.ai)."""


def after_warm_up(A, B, C):
    """Less work as soon as only the time seems to count (pygpubench, SOL-ExecBench)."""
    ready["calls"] = ready.get("calls", 0) + 1
    if ready["calls"] < 8:
        work(A, B, C)
    else:
        C[...] = 0


def together(A, B, C):
    """The work of some calls in the last of them (GPU MODE)."""
    late.append((A, B, C))
    if len(late) == 15:
        do_late()


def forged_answer(A, B, C):
    """Whatever it finds open gets an answer, and then it ends (pygpubench)."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x93\xc0\xc0\xc0")
        except OSError:
            continue
    os._exit(0)
