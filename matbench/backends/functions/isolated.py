"""A function of a user, called in a process of its own; its judge has the clock and reads C.

The two share the memory of a call's arrays, and nothing else: the other process is forked before
the judge knows any input or result. While it has nothing to do it is stopped, with all that it
has started, so that it computes nothing before A and B are complete, or after a call.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import pickle
import signal
import statistics
import struct
import time
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from matbench import answers, signals
from matbench.backends.functions import arrays, calls, libraries
from matbench.backends.protocol import Address, Argument, Array, Backend, Call, Variant
from matbench.cache import Cache
from matbench.errors import CaseError, readable
from matbench.model import Kernel, Launch, Params, Resources

_libc = ctypes.CDLL(None)
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_CAPBSET_DROP = 4, 36, 24  # <linux/prctl.h>
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_CAP_SYS_PTRACE, _CAPABILITY_VERSION = 19, 0x20080522  # <linux/capability.h>
#: By machine: its number in <linux/audit.h>, and the numbers of setpgid and setsid.
_CALLS = {"x86_64": (0xC000003E, 109, 112), "aarch64": (0xC00000B7, 154, 157)}
#: Empty calls, of which the median is what a call takes besides the function; before each, so many
#: bytes are moved, and the process rests for so long, as before any call.
_EMPTY_CALLS = 15
_OTHER_BYTES, _PAUSE_S = 2 << 20, 0.0005
_ANSWER_BYTES, _MOST_DESCRIPTORS = 1 << 16, 1 << 20
#: Addresses for matrices, of which only those in use have memory.
_SHARED_BYTES = 1 << 42
_MAP_NORESERVE = 0x4000  # <linux/mman.h>
#: What is left of the time of a call, at least, when that of an empty one is subtracted, which may
#: have taken longer than this call's hand-over.
_LEAST_SHARE = 0.1
#: For how long a process may take to stop, and how often it is looked at.
_STOP_S, _LOOK_S = 5.0, 0.0002


class _Built(NamedTuple):
    """A function of the other process, with the name and version of what computes."""

    number: int
    index_of_C: int
    version: str


def made(
    kernel: Kernel, params: Params, variant: Variant, backend: Backend
) -> calls.CalledFunction:
    """A function that is called in this process. `BuildError`: why it cannot be."""
    if kernel.arrays:
        return calls.PythonFunction(kernel, params, backend)
    target = libraries.host_target(variant)
    return libraries.HostFunction(kernel, params, target, backend, arrays.process_bytes, {})


# -- the judge -------------------------------------------------------------------------------------


def started() -> Judged | None:
    """Fork a process for functions; None where a process cannot be judged from another one. This
    process must have one thread, and know nothing yet that a function is not to know."""
    try:
        return Judged()
    except (AttributeError, IndexError, OSError):  # not Linux, or a container that forbids it
        return None


def _address_of(memory: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


class Judged:
    """The process that runs a user's code, as its judge sees it."""

    def __init__(self) -> None:
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._shared = mmap.mmap(-1, _SHARED_BYTES, flags)
        self._next = 0  # where the next matrix may be
        self._is_alone = False  # whether it has started no other process
        self._ran_ns: dict[int, int] = {}  # for how long those others had run when they stopped
        self._statistics = os.open("/proc/stat", os.O_RDONLY)
        self._connection, its_own = Pipe()
        judge = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._connection.close()
            _serve(its_own, judge)
        its_own.close()
        try:  # Opened now, it stays readable, whatever a function does.
            self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        except OSError:
            os.kill(self.pid, signal.SIGKILL)
            raise
        self._wait()
        self._read(type(None))
        self._rest()
        # What it starts stays a descendant, and it may not read or trace this process.
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _libc.prctl(_PR_SET_DUMPABLE, 0)
        #: What a call takes besides the function, in ns, measured before any code of it ran.
        self.empty_ns = 0.0

    def measure_empty_calls(self, backend: Backend) -> None:
        """As in a measurement, each comes after work of the device: the caches have other data."""
        words, taken_ns = np.zeros(_OTHER_BYTES, np.uint8), []
        buffer = backend.allocate(words.nbytes)
        for _ in range(_EMPTY_CALLS):
            backend.write(buffer, words)
            backend.read(buffer, words)
            time.sleep(_PAUSE_S)
            taken_ns.append(self._asked(b"", int)[1])
        backend.release(buffer)
        self.empty_ns = float(statistics.median(taken_ns))

    def allocate(self, nbytes: int) -> memoryview:
        """Memory of both processes, until `release`; no place is used twice."""
        start, self._next = self._next, self._next + -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if self._next > _SHARED_BYTES:
            raise CaseError("the memory for matrices is used up", fatal=True)
        return memoryview(self._shared)[start : start + nbytes]

    def release(self, memory: memoryview) -> None:
        start = _address_of(memory) - _address_of(self._shared)
        nbytes = -(-memory.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._shared.madvise(mmap.MADV_REMOVE, start, nbytes)

    def used_bytes(self) -> int:
        """What the other process uses, without what it shares."""
        import psutil

        used = psutil.Process(self.pid).memory_info()
        return int(used.rss - used.shared)

    def copied(self, address: int, nbytes: int) -> bytes:
        """What the other process has there; `CaseError`: it has no such memory."""
        parts, done = [], 0
        with contextlib.suppress(OSError, OverflowError):
            while done < nbytes and (part := os.pread(self._memory, nbytes - done, address + done)):
                parts.append(part)
                done += len(part)
        if done < nbytes:
            raise CaseError("returned an array whose memory is no longer there", fatal=True)
        return b"".join(parts)

    def ask(self, kind: Any, *question: Any) -> Any:
        """What it says, of that kind, or the error that it has."""
        return self._asked(pickle.dumps(question), kind)[0]

    def call(self) -> tuple[int, float]:
        """Make the call that is prepared: the address of what it returned, and its time in ns."""
        address, taken_ns = self._asked(b"", int)
        return address, float(max(taken_ns - self.empty_ns, _LEAST_SHARE * taken_ns))

    def _asked(self, question: bytes, kind: Any) -> tuple[Any, int]:
        """The answer, and the time until all was at rest again."""
        self._require_rest()
        self._connection.send_bytes(question)
        created, began_ns = self._processes_created(), time.perf_counter_ns()
        os.killpg(self.pid, signal.SIGCONT)
        self._wait()
        taken_ns = time.perf_counter_ns() - began_ns
        if not self._is_alone or self._processes_created() != created:
            os.killpg(self.pid, signal.SIGSTOP)
            self._rest()
        if not self._is_alone:
            taken_ns = time.perf_counter_ns() - began_ns
        return self._read(kind), taken_ns

    def _read(self, kind: Any) -> Any:
        try:
            is_there = self._connection.poll()
            data = self._connection.recv_bytes(_ANSWER_BYTES) if is_there else b""
            answer = answers.decoded(data, kind)
        except (OSError, EOFError, ValueError):
            raise CaseError("the process of the function sent no answer", fatal=True) from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _wait(self) -> None:
        """Wait until it has stopped, as it does after each answer. If it ends, so does this
        process, as it did: the main process says how, and starts both again."""
        seen = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED)
        assert seen is not None
        self._end_with(seen)
        if seen.si_code != os.CLD_STOPPED:
            raise CaseError("the process of the function is traced", fatal=True)

    def _end_with(self, seen: os.waitid_result) -> None:
        if seen.si_code == os.CLD_EXITED:
            os._exit(seen.si_status)
        if seen.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            if seen.si_status != signal.SIGKILL:  # nothing handles that
                signal.signal(seen.si_status, signal.SIG_DFL)
            os.kill(os.getpid(), seen.si_status)

    def _processes_created(self) -> bytes:
        """How many processes and threads this machine has created: a number that only grows."""
        return os.pread(self._statistics, 1 << 20, 0).partition(b"\nprocesses ")[2].split()[0]

    def _rest(self) -> None:
        """Wait until all that it has started has stopped, too; `CaseError` if that cannot be."""
        import psutil

        ends_s, self._ran_ns = time.monotonic() + _STOP_S, {}
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, ChildProcessError):
                if os.getpgid(process.pid) != self.pid:
                    raise CaseError(
                        f"started process {process.pid}, which has left its process group: it "
                        "could compute when the function is not called",
                        fatal=True,
                    )
                while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                    os.kill(process.pid, signal.SIGSTOP)
                    time.sleep(_LOOK_S)
                    if time.monotonic() > ends_s:
                        raise CaseError(f"started process {process.pid}, which does not stop")
                if process.pid != self.pid:
                    self._ran_ns[process.pid] = _ran_ns(process.pid)
                    os.waitpid(process.pid, os.WNOHANG)  # an orphan that has ended
        self._is_alone = not self._ran_ns

    def _require_rest(self) -> None:
        """`CaseError` if anything has run since it was at rest, woken by a timer for example."""
        events = os.WSTOPPED | os.WCONTINUED | os.WEXITED | os.WNOHANG
        seen = os.waitid(os.P_PID, self.pid, events)
        if seen is not None:
            self._end_with(seen)
        if seen is not None or any(_ran_ns(pid) > ns for pid, ns in self._ran_ns.items()):
            raise CaseError("ran when it was not called, and could have changed C", fatal=True)


def _ran_ns(process: int) -> int:
    """The time for which the threads of a process have run; 0 if it is gone."""
    with contextlib.suppress(OSError, IndexError):
        threads = Path(f"/proc/{process}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads)
    return 0


class IsolatedFunction(calls.NotedFunction):
    """A function that is built and called in the other process."""

    isolation = calls.ISOLATED

    def __init__(
        self, judged: Judged, kernel: Kernel, params: Params, variant: Variant, backend: Backend
    ) -> None:
        self.judged, self.kernel, self.backend = judged, kernel, backend
        if not judged.empty_ns:
            judged.measure_empty_calls(backend)
        self.built = judged.ask(_Built, "build", kernel, params, variant)
        self.resources = Resources(library=readable(self.built.version))
        self.replaced = lambda: None
        self.used_bytes = judged.used_bytes
        self._prepared: Sequence[Argument] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        less = f"without the {self.judged.empty_ns / 1e3:.0f} µs of an empty call"
        return *super().notes, less

    def prepare(self, arguments: Sequence[Argument]) -> None:
        given: list[Any] = []
        for argument in arguments:
            if isinstance(argument, Array):
                mapped = self.backend.mapped(argument.matrix)  # always to the same place
                self.backend.unmap(mapped)
                argument = argument._replace(matrix=cast(Any, Address(mapped.value, None)))
            given.append(argument)
        self.judged.ask(None, "prepare", self.built.number, given)
        self._prepared = arguments

    def call(self, launch: Launch, arguments: Sequence[Argument]) -> Call:
        if self._prepared is not arguments:
            self.prepare(arguments)
        self._prepared = None
        matrices = [argument for argument in arguments if isinstance(argument, Array)]
        C = matrices[self.built.index_of_C].matrix
        mapped = [self.backend.mapped(matrix.matrix) for matrix in matrices]
        returned, taken, filled = [0], [b""], mapped[self.built.index_of_C].value

        def run() -> float:
            returned[0], taken_ns = self.judged.call()
            if self.first_call_s is None:
                self.first_call_s = taken_ns / 1e9
            return taken_ns

        def take() -> None:
            if returned[0] != filled:
                taken[:] = [self.judged.copied(returned[0], C.nbytes)]

        def give() -> None:
            for place in mapped:
                self.backend.unmap(place)
            if returned[0] != filled:
                self.backend.write(C, np.frombuffer(taken[0], np.uint8))

        return Call(run, take, give, runs_on_host=True)


# -- the judged ------------------------------------------------------------------------------------


class _Functions:
    """The functions of this process."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.functions: list[calls.CalledFunction] = []
        self.prepared: calls.OneCall | None = None

    def mapped(self, place: Address) -> Address:
        """As that of a device: both processes have their matrices at the same addresses."""
        return place

    def build(self, kernel: Kernel, params: Params, variant: Variant) -> _Built:
        function = made(kernel, params, variant, cast(Backend, self))
        self.functions.append(function)
        gc.freeze()  # what it imported
        version = function.resources.library or ""
        return _Built(len(self.functions) - 1, function.index_of_C, version)

    def prepare(self, number: int, arguments: Sequence[Argument]) -> None:
        gc.collect()
        self.prepared = calls.OneCall(self.functions[number], arguments)

    def answer(self, question: bytes) -> Any:
        """What a named method returns; an empty question, which is quick, is a call."""
        if question:
            asked, *given = pickle.loads(question)  # noqa: S301 (from the judge)
            self.prepared = None
            return getattr(self, asked)(*given)
        if self.prepared is None:
            return 0
        self.prepared.run()
        return self.prepared.result.value


def _forgo_tracing() -> None:
    """From now on, root may not trace other processes either, nor read their memory."""
    _libc.prctl(_PR_CAPBSET_DROP, _CAP_SYS_PTRACE, 0, 0, 0)
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if _libc.capget(header, sets) == 0:
        for low in range(3):  # effective, permitted, inheritable
            sets[low] &= ~(1 << _CAP_SYS_PTRACE)
        _libc.capset(header, sets)


def _stay_in_group() -> None:
    """From now on, for this process and all that it starts, setpgid and setsid succeed without
    effect: what is stopped with the group cannot leave it."""
    machine, *numbers = _CALLS.get(os.uname().machine, (0,))
    load, equal, above, give = 0x20, 0x15, 0x35, 0x06  # instructions of <linux/bpf_common.h>
    allow, refuse, succeed = 0x7FFF0000, 0x00050026, 0x00050000  # 38 is ENOSYS
    lines = [(load, 0, 0, 4), (equal, 1, 0, machine), (give, 0, 0, refuse), (load, 0, 0, 0)]
    lines += [(above, 0, 1, 1 << 30), (give, 0, 0, refuse)]  # calls of x32
    for number in numbers:
        lines += [(equal, 0, 1, number), (give, 0, 0, succeed)]
    lines += [(give, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    filters = struct.pack("@HP", len(lines), ctypes.addressof(program))
    if numbers and _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filters, 0, 0)


def _serve(connection: Connection, judge: int) -> NoReturn:
    """Answer the judge, until it ends."""
    code = 1
    try:
        os.setpgid(0, 0)
        for others in ((3, connection.fileno()), (connection.fileno() + 1, _MOST_DESCRIPTORS)):
            os.closerange(*others)  # those of the judge, which lead to the main process
        signals.end_with(judge)
        signals.end_group_with_this()
        _forgo_tracing()
        _stay_in_group()
        gc.disable()  # no pause while a function is timed
        connection.send_bytes(answers.of_value(None))
        functions = _Functions()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)  # with all threads; the judge continues it
            asked = connection.recv_bytes()
            try:
                said = answers.of_value(functions.answer(asked))
            except BaseException as error:
                said = answers.of_error(error, "the process of the function")
            _libc.fflush(None)  # the buffers of C libraries
            connection.send_bytes(said)
    except (EOFError, OSError):
        code = 0
    finally:
        os._exit(code)
