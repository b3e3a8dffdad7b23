"""Plugin of pytest for `mutants.py`: the order of tests, what happens to each, and what each runs.

Imported in processes that tests start, too, so it imports little.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

#: Of each process: a mutant may ask for all there is.
MEMORY_BYTES = 8 * 1024**3


def say(*words: object) -> None:
    with Path(os.environ["MUTANTS_LOG"]).open("a", encoding="utf-8") as log:
        log.write("\t".join(map(str, words)) + "\n")


def pytest_configure() -> None:
    if "MUTANTS_TESTS" in os.environ:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if "MUTANTS_TESTS" in os.environ:
        found = {item.nodeid: item for item in items}
        names = Path(os.environ["MUTANTS_TESTS"]).read_text(encoding="utf-8").splitlines()
        items[:] = [found[name] for name in names if name in found]


def pytest_runtest_protocol(item: Any) -> None:
    attribute(item.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    say("started", nodeid, 0)


def pytest_runtest_logreport(report: Any) -> None:
    if not hasattr(report, "node"):  # in xdist's main process, of a test that ran in another
        say(report.outcome, report.nodeid, report.duration)


def pytest_sessionfinish() -> None:
    end_task()


# -- while the lines are mapped --------------------------------------------------------------------


def _coverage() -> Any:
    if "COVERAGE_PROCESS_START" not in os.environ:
        return None
    from coverage import Coverage

    return Coverage.current()


def attribute(test: str) -> None:
    """What runs in this process from now on is part of that test.

    A function that was called in this process has removed what traces it.
    """
    if coverage := _coverage():
        if sys.gettrace() is None:
            coverage.stop()
            coverage.start()
        coverage.switch_context(f"\n{test}")


def begin_task() -> None:
    """A worker process outlives a test, but knows the variables of the one that it works for."""
    attribute(os.environ.get("PYTEST_CURRENT_TEST", ""))


def end_task() -> None:
    """A worker process is killed in the end."""
    if coverage := _coverage():
        coverage.save()
