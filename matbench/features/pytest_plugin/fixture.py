"""The fixture `matmul`: a judge that stays warm, whose verdicts pass or fail tests."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import filelock
import pytest

from matbench.backends.protocol import NoDeviceError
from matbench.cache import Cache
from matbench.cli.judge import Candidate, Judge, Judges
from matbench.cli.verdicts import Comparisons
from matbench.errors import MatbenchError, UsageError, refusing
from matbench.features.check import view
from matbench.features.check.probing import Probing
from matbench.features.gate import recorded
from matbench.show import comparisons, terminal
from matbench.show.reasons import skip_reason

#: A kernel as for `matbench.Judge`, or a function of a Python file.
Product = Candidate | Callable[..., Any]


class Matmul:
    """Fails a test whose product of matrices is wrong, or slower than another one.

    A product is a function at the top of a Python file, a path (`gemm.cu`, `gemm.py::multiply`),
    the text of a kernel file, or the name of one of matbench's kernels. The device is opened by the
    first test that needs it. Processes of pytest-xdist take turns on it.
    """

    def __init__(self, options: Mapping[str, Any], judges: Judges) -> None:
        self._options, self._judges = options, judges

    def check(self, product: Product, *, quick: bool = False, **asked: Any) -> None:
        """Fail unless it is right at the awkward shapes of `matbench check`, or the few of
        `--quick`, wherever it can run.

        It is `asked` for as by `matbench.Judge.run`: `entry`, `front_matter`, `contract`.
        """
        with self._alone() as judge:
            kernel = judge.kernel(_candidate(product), **asked)
            if kernel.never is not None:  # it computes something else, at every shape
                raise UsageError(f"{kernel.name}: {skip_reason(kernel.never)}")
            probing = Probing(kernel, (judge.place(kernel),), {}, quick=quick, sanitize=False)
            probing.probe(judge.pool)
        statuses = {outcome.status for outcome in probing.outcomes}
        if statuses & {"wrong", "failed"} or "measured" not in statuses:
            *table, summary = view.renderables(kernel.name, probing.devices[0], probing.probes)
            _fail(terminal.text(summary, "", *table))

    def compare(
        self,
        product: Product,
        baseline: Product,
        max_slower: float = 0.03,
        *,
        sizes: str | None = None,
        max_time: float = 10.0,
    ) -> Comparisons:
        """Time both in turns; fail if the product is wrong, or SLOWER by more than `max_slower`, a
        share, at any size, or if no size could be judged.

        `sizes` are written as on the command line, and `max_time` is the longest time in seconds
        for one of them.
        """
        with self._alone() as judge:
            if not (isinstance(max_slower, int | float) and max_slower >= 0):
                raise UsageError(f"max_slower={max_slower!r:.60}: write a share such as 0.03")
            found = judge.compare(
                *map(_candidate, (baseline, product)), sizes=sizes, max_time=max_time,
                threshold=min(0.01, max_slower),
            )  # fmt: skip
        judged = [recorded.is_judged(record, max_slower) for record in found.records]
        slow = [recorded.is_too_slow(record, max_slower) for record in found.records]
        why = found.reason
        if why is None and any(slow):
            why = f"SLOWER by more than {max_slower:.1%} at {sum(slow)} of {len(slow)} sizes"
        elif why is None and not any(judged):
            why = "no size could be judged: the times vary too much, or max_time is too short"
        if why is not None:
            table = terminal.renderables(comparisons.report(found.records))
            _fail(terminal.text(why, "", *table[:-1]).rstrip() if found.records else why)
        return found

    def require_gpu(self) -> None:
        """Skip the test if there is no GPU to run on; a mistake in the options fails it."""
        try:
            device = self._judge.device
        except NoDeviceError as error:
            pytest.skip(str(error))
        except MatbenchError as error:
            _fail(str(error))
        if device.kind != "gpu":
            pytest.skip(f"needs a GPU; matbench would use {device.label}")

    @property
    def _judge(self) -> Judge:
        with refusing("matmul_options"):
            return self._judges.get(**self._options)

    @contextmanager
    def _alone(self) -> Iterator[Judge]:
        """The judge, while no other process of this user's tests measures on its device; an error
        is one line that fails the test."""
        try:
            judge, cache = self._judge, Cache()
            where = "cpu" if judge.device.kind == "cpu" else judge.device.identity
            name = f"pytest-{re.sub(r'[^0-9A-Za-z]', '-', where)}.lock"
            try:
                turn = filelock.FileLock(cache.folder / name).acquire()
            except OSError as error:
                raise cache.unusable(error) from None
            with turn:
                yield judge
        except MatbenchError as error:
            _fail(str(error))


def _fail(text: str) -> NoReturn:
    """Fail the test; its first line is what pytest's summary shows."""
    raise pytest.fail.Exception(text, pytrace=False) from None


def _candidate(product: Product) -> Candidate:
    """What `matbench.Judge` takes: of a function, its file and name."""
    if not callable(product):
        return product
    module = sys.modules.get(getattr(product, "__module__", ""))
    names = [name for name, value in vars(module).items() if value is product] if module else []
    file = getattr(module, "__file__", None)
    if file is None or not names:
        raise UsageError(
            f"{product!r:.60}: cannot be called in matbench's own process, which loads it from its "
            "file: give a function at the top of a Python file, or a path such as gemm.py::multiply"
        )
    own = getattr(product, "__name__", None)
    return f"{file}::{own if own in names else names[0]}"
