"""`matbench.Judge`: verdicts on kernels, one after the other, in a worker that stays warm."""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from matbench import workloads
from matbench.analysis.statistics import ComparisonPlan
from matbench.backends.protocol import UnavailableError
from matbench.bench.options import Options
from matbench.cli import registry
from matbench.cli.options import DeadlineOptions, DeviceOptions, SizeOptions, checked, require_turns
from matbench.cli.selection import Adopter, is_path, load, parsed
from matbench.cli.verdicts import Comparisons, Verdict
from matbench.errors import NotAdoptedError, UsageError, refusing
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.contract import Contract
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Adoption, Case, DeviceInfo, Inputs, Kernel
from matbench.show.reasons import comparison_reason
from matbench.show.table import grouped
from matbench.worker.comparing import Bench
from matbench.worker.worker import WorkerPool

#: A path, a kernel's name (`tiled`), or the text of a kernel file or a Python file, which has
#: several lines.
Candidate = str | PathLike[str]

#: What is asked of candidates, also as a dict.
Asked = Contract | Mapping[str, Any]

#: What a text without a name is called.
_UNNAMED = "candidate"
#: A text that is Python, even if it has mistakes: no line of CUDA C begins so.
_PYTHON = re.compile(r"^(?:def|class) +\w+ *\(", re.MULTILINE)
#: After so many kernels, the worker forgets the builds of all.
_FORGET_AFTER = 16
#: How many kernels are compiled ahead on a GPU.
AHEAD = 32


class Judge(AbstractContextManager["Judge"]):
    """Checks and times kernels on one device, in one process that stays warm.

        with matbench.Judge(sizes="256,1000", timeout=10) as judge:
            verdict = judge.run("candidate.cu")

    A kernel that crashes or hangs costs only its own verdict. `sizes` are written as on the command
    line, and so are `inputs`, `seed`, `alpha`, `beta`, `batch`, `backend` and `device`. `timeout`
    is the longest time in seconds to check and sample one case; a build may take 120 s. `max_time`
    is the longest time in seconds to sample one. A file without front matter is adopted first,
    unless `adopt` is false. It is wrong if it does not compute what the `contract` asks for: by
    default C = A·B, row-major and of any size. With a `contract`, so is any other file.

    `UsageError`: an argument is not allowed, there is no such device, or the judge is closed. Not
    for several threads.
    """

    def __init__(
        self,
        sizes: str | None = None,
        *,
        inputs: Inputs | tuple[Inputs, ...] = (),
        seed: int = 0,
        alpha: str | None = None,
        beta: str | None = None,
        batch: str | None = None,
        backend: str = "auto",
        device: str | None = None,
        timeout: float = 60.0,
        max_time: float = 0.1,
        hot: bool = False,
        adopt: bool = True,
        contract: Asked | None = None,
    ) -> None:
        self._where = DeviceOptions(*checked(backend=backend, device=device))
        given = checked(sizes=sizes, inputs=inputs, seed=seed, alpha=alpha, beta=beta, batch=batch)
        self._problem = SizeOptions(*given)
        timeout, max_time, hot = checked(timeout=timeout, max_time=max_time, hot=hot)
        # `ends` closes what is in it, so that may not refer to this judge, which would never end.
        self.device = here = self._where.choose()
        self._problem.problems([])  # refuses factors that cannot be read
        _require_sizes(self._problem.sizes, self._problem.inputs)
        options = Options(blocks=False, cold=not hot, hot=hot, max_time_s=max_time)
        ends = ExitStack()
        deadlines = msgspec.structs.replace(DeadlineOptions(timeout).deadlines, option="timeout")
        pool = WorkerPool(options, deadlines, most_apart=2)
        #: The workers of this judge, for features.
        self.pool = ends.enter_context(pool)
        is_adopting = adopt and registry.has(registry.ADOPTION)
        self._adopter = ends.enter_context(Adopter(lambda: here, is_on=is_adopting))
        self._contract = None if contract is None else Contract.of(contract)
        self._judged = 0
        self._end = weakref.finalize(self, ends.close)
        self.pool.start([self.device])

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker's process; this also happens when the program ends."""
        self._end()

    def run(
        self,
        candidate: Candidate,
        *,
        sizes: str | None = None,
        entry: str | None = None,
        front_matter: Mapping[str, Any] | None = None,
        contract: Asked | None = None,
    ) -> Verdict:
        """Check and time a kernel at all sizes, with all its swept constants.

        `entry` names the kernel in a file with several; keys of `front_matter` replace those of the
        file, and a `contract` that of the judge.
        """
        sizes, asked = self._required(sizes), self._asked(contract)
        try:
            with refusing(_named(candidate)):
                kernel = self._adopted(candidate, _given(entry, front_matter), asked)
                cases = self._cases(kernel, sizes)
        except UsageError as error:
            known = error if isinstance(error, NotAdoptedError) else NotAdoptedError(str(error))
            return Verdict(
                kernel=_named(candidate),
                status="skipped" if known.is_lacking else "failed",
                reason=str(error),
                adoption=None if known.closest is None else Adoption(known.closest),
            )
        self._forget()
        worker, found = self.pool.worker(self.place(kernel), kernel), {}
        # Least work first: after a timeout, no more work is tried.
        for case in sorted(cases, key=lambda case: workloads.work_of(case.problem)):
            found[id(case)] = worker.measure(case)
        name = kernel.name if cases else _named(candidate)
        return Verdict.of(name, [found[id(case)] for case in cases], kernel.adoption)

    def run_all(self, candidates: Iterable[Candidate], **options: Any) -> Iterator[Verdict]:
        """The verdicts of `run`, in order; on a GPU, the next kernels are compiled meanwhile."""
        waiting, ahead = iter(candidates), deque[Candidate]()
        while True:
            for candidate in islice(waiting, AHEAD - len(ahead)):
                self.compile_ahead(candidate, **options)
                ahead.append(candidate)
            if not ahead:
                return
            yield self.run(ahead.popleft(), **options)

    def compile_ahead(
        self,
        candidate: Candidate,
        *,
        sizes: str | None = None,
        entry: str | None = None,
        front_matter: Mapping[str, Any] | None = None,
        contract: Asked | None = None,
    ) -> None:
        """On a GPU, begin to compile a kernel that `run` gets later; on a CPU do nothing, because
        it would disturb what is timed."""
        if self.device.kind == "cpu":
            return
        with suppress(UsageError, UnavailableError):  # `run` says so, or adopts it
            kernel = self._kernel(candidate, _given(entry, front_matter))
            where, cases = self.place(kernel), self._cases(kernel, sizes)
            self.pool.build_ahead([(where, case) for case in cases])

    def kernel(
        self,
        candidate: Candidate,
        *,
        entry: str | None = None,
        front_matter: Mapping[str, Any] | None = None,
        contract: Asked | None = None,
    ) -> Kernel:
        """The kernel that `run` would measure, for features; `UsageError` says why there is none.

        It counts as one that is judged: the workers forget earlier ones now and then.
        """
        self._required(None)
        self._forget()
        try:
            with refusing(_named(candidate)):
                return self._adopted(candidate, _given(entry, front_matter), self._asked(contract))
        except NotAdoptedError as error:  # says what is wrong with a function, and not where it is
            raise UsageError(f"{_named(candidate)}: {error}") from None

    def compare(
        self,
        baseline: Candidate,
        candidate: Candidate,
        *,
        sizes: str | None = None,
        threshold: float = 0.01,
        max_time: float = 10.0,
    ) -> Comparisons:
        """Time two kernels in turns at each size, each with its fastest constants.

        `threshold` is the largest difference that counts as SAME, as a share. `max_time` is the
        longest time in seconds for one size.
        """
        sizes = self._required(sizes)
        threshold, max_time = checked(threshold=threshold, max_time=max_time)
        plan = ComparisonPlan(threshold=threshold, maximum_time_ns=max_time * 1e9)
        sides = []
        try:
            for side in (baseline, candidate):
                kernel = self.kernel(side)
                require_turns(kernel, self.device)
                sides.append(grouped(self._cases(kernel, sizes), lambda case: case.problem))
        except UsageError as error:
            return Comparisons(reason=str(error))
        bench = Bench(self.pool, self.device, plan, self._problem.seed)
        records = [
            bench.compare(*(bench.fastest(side[problem]) for side in sides))
            for problem in sides[0]
            if problem in sides[1]
        ]
        if not records:
            return Comparisons(reason="the two have no size in common")
        broken = (comparison_reason(record) for record in records if record.verdict is None)
        return Comparisons(records=tuple(records), reason=next(broken, None))

    # -- the steps of one verdict ------------------------------------------------------------------

    def _cases(self, kernel: Kernel, sizes: str | None) -> list[Case]:
        """The cases of a kernel; `UsageError` says why it has none."""
        wanted = self._problem if sizes is None else replace(self._problem, sizes=sizes)
        return sweep.cases([kernel], wanted.problems([kernel]), {}, self.place(kernel))

    def _adopted(
        self, candidate: Candidate, given: Mapping[str, Any], asked: Contract | None
    ) -> Kernel:
        read, text = partial(self._kernel, candidate), _text(candidate)
        return self._adopter.kernel(read, _path(candidate), given, asked, text)

    def _kernel(self, candidate: Candidate, given: Mapping[str, Any]) -> Kernel:
        if (text := _text(candidate)) is not None:
            data = text.encode(errors="surrogatepass")  # refused with a reason
            kernel, _ = parsed(data, _path(candidate), given, _UNNAMED)
        elif isinstance(candidate, str) and not is_path(candidate):
            return catalogue.Catalogue(catalogue.builtin()).get(candidate)
        else:
            kernel, _ = load(Path(candidate), given)
        [kernel] = catalogue.told_apart([kernel])
        return kernel

    def place(self, kernel: Kernel) -> DeviceInfo:
        """The judge's device, or the CPU for a kernel of the host."""
        return self._where.choose(kernel) if kernel.on_host else self.device

    def _asked(self, contract: Asked | None) -> Contract | None:
        return self._contract if contract is None else Contract.of(contract)

    def _required(self, sizes: str | None) -> str | None:
        """The sizes of a call; `UsageError` if they cannot be read, or the judge is closed."""
        if not self._end.alive:
            raise UsageError("this judge is closed; make another")
        [sizes] = checked(sizes=sizes)
        if sizes is not None:
            _require_sizes(sizes, self._problem.inputs)
        return sizes

    def _forget(self) -> None:
        """Let the worker forget earlier kernels now and then, so that memory does not grow."""
        self._judged += 1
        if self._judged % _FORGET_AFTER == 0:
            self.pool.forget()


class Judges:
    """Judges that stay warm, each made when its arguments are asked for; at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[str, Judge] = {}

    def get(self, **arguments: Any) -> Judge:
        """The judge with these arguments; if there would be too many, it is the only one."""
        asked = repr(arguments)
        if asked not in self._made:
            if len(self._made) >= self._most:
                self.close()
            self._made[asked] = Judge(**arguments)
        return self._made[asked]

    def close(self) -> None:
        """End the processes of all."""
        while self._made:
            self._made.popitem()[1].close()


def _text(candidate: Candidate) -> str | None:
    """The text of a kernel file, if it is one."""
    return candidate if isinstance(candidate, str) and "\n" in candidate else None


def _path(candidate: Candidate) -> Path:
    """The path that its `#include` lines and imports are relative to."""
    text = _text(candidate)
    if text is None:
        return Path(candidate)
    return Path(f"{_UNNAMED}.{'py' if _PYTHON.search(text) else 'cu'}")


def _given(entry: str | None, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keys of front matter, of which the `entry` is one."""
    return {**(table or {}), **({"entry": entry} if entry is not None else {})}


def _named(candidate: Candidate) -> str:
    return str(candidate) if _text(candidate) is None else _UNNAMED


def _require_sizes(sizes: str | None, inputs: tuple[Inputs, ...]) -> None:
    """`UsageError` if these sizes and inputs suit no workload."""
    first, *others = workloads.WORKLOADS.values()
    for workload in others:
        with suppress(UsageError):
            parse_problems(workload.default_sizes if sizes is None else sizes, workload, inputs)
            return
    parse_problems(first.default_sizes if sizes is None else sizes, first, inputs)
