"""A judge and the process that it judges, without a function: who may do what, and when."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from itertools import count

import pytest

from matbench.backends.functions import isolated
from matbench.errors import CaseError

_GET_DUMPABLE, _GET_CHILD_SUBREAPER = 3, 37  # <linux/prctl.h>


def check_rights() -> None:
    """Nobody reads or traces a judge, and orphans of the other process become its children."""
    isolated.Judged()
    libc, reaps = ctypes.CDLL(None), ctypes.c_int()
    assert libc.prctl(_GET_DUMPABLE, 0, 0, 0, 0) == 0
    assert libc.prctl(_GET_CHILD_SUBREAPER, ctypes.byref(reaps), 0, 0, 0) == 0
    assert reaps.value == 1


def check_rest() -> None:
    """What was continued by others is not asked, though it has stopped again or still runs."""
    judged = isolated.Judged()
    judged.call()
    os.kill(judged.pid, signal.SIGCONT)
    with pytest.raises(CaseError, match="ran when it was not called"):
        judged.call()


def check_time() -> None:
    """The time of a call includes that until all that it has started is at rest, and not how long
    it takes to see that this is nothing, whenever anything on the machine starts a process."""
    judged = isolated.Judged()
    rest, is_alone = judged._rest, True

    def late() -> None:
        time.sleep(0.5)
        rest()
        judged._is_alone = is_alone

    judged._rest = late  # type: ignore[method-assign]
    created = (b"%d" % number for number in count())
    judged._processes_created = lambda: next(created)  # type: ignore[method-assign]
    began_ns = time.perf_counter_ns()
    taken_ns = judged.call()[1]
    assert taken_ns <= time.perf_counter_ns() - began_ns - 500e6
    judged._is_alone = is_alone = False
    assert judged.call()[1] >= 500e6


def check_children() -> None:
    """A child that has run since it was at rest is found, too."""
    judged = isolated.Judged()
    judged._ran_ns = {os.getpid(): 0}
    with pytest.raises(CaseError, match="ran when it was not called"):
        judged.call()


@pytest.mark.parametrize("name", ["rights", "rest", "time", "children"])
def test_a_judge(name: str) -> None:
    """In a process of its own, because it becomes a judge."""
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("passed\n", "")


if __name__ == "__main__":
    globals()[f"check_{sys.argv[1]}"]()
    print("passed")
