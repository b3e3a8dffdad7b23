"""What must become of each kernel in tests/kernels: one schema, and one way to measure them.

`python -m support.expected [BACKEND [FOLDER …]]`, in the folder tests, lists what becomes of each,
and which check refuses it; the backend is opencl or cuda.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pytest

from matbench import backends, workloads
from matbench.bench import launches
from matbench.bench.options import CHECKS, Deadlines, Options
from matbench.bench.session import Session
from matbench.errors import MatbenchError
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Case, DeviceInfo, Inputs, Kernel
from matbench.records.outcome import Outcome
from matbench.worker.worker import WorkerPool
from support import warm
from support.paths import KERNELS
from support.products import case_of
from support.toml import table

Words = tuple[str, ...]
Backend = Literal["opencl", "cuda"]
Status = Literal["measured", "wrong", "failed", "refused"]


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of an `expected.toml`; its name is the file's, without `.cu`, or `FILE::FUNCTION`.
    Keys that are not given have the values of the file's `[default]`.

    A mistake or a trick is caught (`caught_by`, `only`), defused (`defused_by`, `only`), measured
    because it gains nothing (`status`, `why`) or declares what it does (`status`, `claims`), or a
    known gap (two statuses, `why`). In `bad`, a session is shared by all without `variables`; in
    `hostile`, the case after it is measured, too; `foreign` is adopted or refused, `graded` graded.
    """

    about: str = ""  # its mistake or its trick
    made_from: str = ""  # the right kernel that it is made from
    backends: tuple[Backend, ...] = ("opencl", "cuda")  # where it is tried
    imports: Words = ()  # it is skipped where these modules cannot be imported
    sizes: Words = ()  # where it has this status
    right_at: Words = ()  # where it is measured
    inputs: Inputs | None = None  # kind of inputs, if not the workload's first probed kind
    constants: dict[str, int] = {}  # all values by default; a function's first
    given: dict[str, Any] = {}  # keys of its front matter
    long: tuple[Backend, ...] = ()  # backends where it is among the long tests
    alone: bool = False  # no other test may run beside it on a GPU

    status: Status | tuple[Status, ...] = "wrong"
    why: str = ""  # why a trick gains nothing, or is not caught
    caught_by: Words = ()  # checks, any of which may be the first to refuse it
    reason: Words = ()  # words that the reason has
    any_of: Words | dict[Backend, Words] = ()  # of these it has some; by backend if they differ
    claims: Words = ()  # keys of front matter in which it declares what it does; it is measured
    # Checks that leave it no opportunity: it is measured, or refused by one of them; without them
    # it is caught by `caught_by`, if given.
    defused_by: Words = ()
    only: Words = ()  # checks without which it is measured
    control_at: Words = ()  # where that is tried, if not at `sizes`
    no_control: str = ""  # why that cannot be shown
    pays: str = ""  # a size at which it takes less than half of the time without them
    mended_by: Words = ()  # a text and its replacement, with which it is right
    twin: str = ""  # the honest function like it, which is measured

    hot: bool = False  # timed by launches back to back
    untimed: tuple[Backend, ...] = ()  # backends where it is checked only
    variables: bool = False  # keeps state in variables of the program
    without: Words = ()  # checks that are off
    takes_s: float = 0  # the least time of a call, if it is measured: what it does not gain
    max_time_s: float = 0.05
    deadline_s: float = 60  # of a launch; on a GPU, which other tests use, twice that

    computes: str = ""  # what `adopt` says of it; without it, it is refused with the reason
    grade: dict[str, Any] | None = None  # what `grade` says of it

    @property
    def statuses(self) -> Words:
        return (self.status,) if isinstance(self.status, str) else self.status

    def some_words(self, backend: Backend) -> Words:
        return self.any_of[backend] if isinstance(self.any_of, dict) else self.any_of


class Entry(NamedTuple):
    """A kernel of a folder and what must become of it."""

    folder: str
    name: str
    expected: Expected

    @property
    def path(self) -> Path:
        file = self.name.split("::")[0]
        return KERNELS / self.folder / (file if "." in file else f"{file}.cu")

    def kernel(self, function: str = "") -> Kernel:
        """It, or another function of its file."""
        entry = function or self.name.partition("::")[2]
        if self.path.suffix == ".py":
            return catalogue.load(Path(f"{self.path}::{entry}"))
        given = {"entry": f"host {entry}", **self.expected.given} if entry else None
        return catalogue.load(self.path, given=given)


def entries(folder: str) -> dict[str, Entry]:
    """Those of a folder, by name."""
    rows = table(KERNELS / folder / "expected.toml")
    default = rows.pop("default", {})
    found = {}
    for name, row in rows.items():
        if "grade" in default:
            row["grade"] = default["grade"] | row.get("grade", {})
        found[name] = Entry(folder, name, msgspec.convert(default | row, Expected))
    return found


#: Those that are measured, or refused by a check; the others are adopted, or graded.
JUDGED = {
    f"{folder}/{entry.name}": entry
    for folder in ("bad", "cheats", "hostile", "functions")
    for entry in entries(folder).values()
}


def tried(
    found: Mapping[str, Entry],
    long: Callable[[Entry, Backend], bool] = lambda _entry, _backend: False,
    sizes: Callable[[Expected], Words] = lambda expected: expected.sizes,
) -> list[Any]:
    """Parameters of a test: each name with each backend where it is tried, and each size; among the
    `long` tests if its table or the function says so, and from the second size on."""
    params = []
    for name, entry in found.items():
        for backend, size in itertools.product(entry.expected.backends, sizes(entry.expected)):
            marks = [pytest.mark.gpu] if backend == "cuda" else []
            is_first = size == sizes(entry.expected)[0]
            if backend in entry.expected.long or not is_first or long(entry, backend):
                marks.append(pytest.mark.long)
            if backend == "cuda" and entry.expected.alone:
                marks.append(pytest.mark.alone)
            at = f"{name}-{size}-{backend}"
            params.append(pytest.param(name, backend, size, marks=marks, id=at))
    return params


def cases(entry: Entry, kernel: Kernel, size: str, device: DeviceInfo) -> list[Case]:
    """Those of a size, at all values of a kernel's constants; skipped ones too."""
    workload, expected = workloads.workload_of(kernel), entry.expected
    [problem] = parse_problems(size, workload, expected.inputs or workload.probed_inputs[0])
    sets = list(sweep.parameter_sets(kernel, {}))
    if expected.constants:
        sets = [{name: expected.constants[name] for name in kernel.sweep}]
    return [
        sweep.case(kernel, problem, params, device)
        for params in (sets[:1] if kernel.kind.is_apart else sets)
    ]


def measured(
    entry: Entry, case: Case, device: DeviceInfo, *more: Case, off: Words = (), spared: Words = ()
) -> Outcome:
    """The outcome with these checks `off` too, in a session that no kernel that keeps anything ran
    in before; `more` are measured after it. `spared`: checks that cannot be the first to fail."""
    expected, is_gpu = entry.expected, device.kind == "gpu"
    hidden = {*expected.without, *off, *spared}
    if off and (entry.folder == "cheats" or "reference" in off):
        hidden.add("reordered")  # a cheat that is let through may do anything at another size
    if entry.folder == "bad" and "reference" in off:
        hidden.add("staggered")  # the same comparison with another build
    options = Options(
        timed=device.backend not in expected.untimed, blocks=False, cold=not expected.hot,
        hot=expected.hot, max_time_s=expected.max_time_s, checks=CHECKS - hidden,
    )  # fmt: skip
    if entry.folder == "hostile":
        _compile_the_judge(device)
    run_s = expected.deadline_s * (2 if is_gpu else 1)
    deadlines = Deadlines(build_s=max(12, expected.deadline_s), run_s=run_s)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warm.workers())
        if entry.folder == "bad" and not expected.variables and not off:
            pool = shared_pool(options, deadlines)  # which is twice as fast
        else:
            pool = stack.enter_context(WorkerPool(options, deadlines))
        worker = pool.worker(device, case.kernel)
        if expected.hot and not is_gpu:
            most = worker.run(_few_sets)
            stack.callback(worker.run, _few_sets, most)
        if off == ("shared",):
            worker.run(_zeros_in_shared_memory)
        outcome = worker.measure(case)
        for another in more:
            after = worker.measure(another)
            assert after.status == "measured", f"after {entry.name}: {after.reason}"
        return outcome


_compiled: set[str] = set()


def _compile_the_judge(device: DeviceInfo) -> None:
    """It has deadlines of its own."""
    if device.label in _compiled:
        return
    _compiled.add(device.label)
    case = case_of("tiled", 20, device, TILE=16)
    with WorkerPool(Options(timed=False), Deadlines()) as pool:
        assert pool.worker(device).measure(case).status == "measured"


_shared: dict[tuple[Options, Deadlines], WorkerPool] = {}


def shared_pool(options: Options, deadlines: Deadlines) -> WorkerPool:
    """For kernels that keep nothing from one launch to the next."""
    if (options, deadlines) not in _shared:
        _shared[options, deadlines] = WorkerPool(options, deadlines)
    return _shared[options, deadlines]


def end() -> None:
    """End the processes that measured."""
    while _shared:
        _shared.popitem()[1].__exit__()
    warm.WarmProcess.end()


def _few_sets(session: Session, most: int = 6) -> int:
    """Times launches back to back on a CPU too: with its guards, a set of buffers takes it as long
    as thousands of products. The most sets before."""
    session.options = msgspec.structs.replace(session.options, back_to_back=True)
    before, launches._MOST_SETS = launches._MOST_SETS, most
    return before


def _zeros_in_shared_memory(session: Session) -> None:
    """Zeros, where the check leaves NaN; without it, what lies there depends on what ran before."""
    poison = session.kernels.poison_shared
    checks = session.options.checks | {"shared"}
    session.options = msgspec.structs.replace(session.options, checks=checks)
    session.kernels.poison_shared = lambda value=0: poison(0)  # type: ignore[method-assign]


def listed(device: DeviceInfo, folders: Sequence[str]) -> Iterator[str]:
    """What becomes of each at its first size and the first values of its constants."""
    for name, entry in JUDGED.items():
        if device.backend in entry.expected.backends and (not folders or entry.folder in folders):
            [case, *_] = cases(entry, entry.kernel(), entry.expected.sizes[0], device)
            outcome = measured(entry, case, device) if case.skip is None else None
            said = f"{outcome.status}  {outcome.check or '-'}" if outcome else "skipped  -"
            yield f"{name}  {case.problem.size}  {said}"


def main() -> None:
    backend, *folders = sys.argv[1:] or ["opencl"]
    try:
        info = backends.devices("cuda")[0] if backend == "cuda" else backends.host_device()
        for line in listed(info, folders):
            print(line, flush=True)
    except MatbenchError as error:
        sys.exit(str(error))
    finally:
        end()


if __name__ == "__main__":
    from support import expected  # whose functions a worker process can import

    expected.main()
