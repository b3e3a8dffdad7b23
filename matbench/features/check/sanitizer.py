"""One case under NVIDIA's compute-sanitizer; findings have file and line.

The sanitizer watches a child Python process that checks the case as usual, but without guard bands:
out-of-bounds accesses are then outside the allocation, where the sanitizer sees them.
"""

from __future__ import annotations

import re
from collections import Counter

from matbench.errors import MatbenchError
from matbench.features.nvidia_tools import observer
from matbench.model import Case, DeviceInfo

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PREFIX = "========= "
_OF_A_THREAD = r" in block \(\d+,\d+,\d+\)| (block|by thread) \(\d+,\d+,\d+\)"
_NOISE = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application")


def run(device: DeviceInfo, case: Case, tool: str, timeout_s: float) -> list[str]:
    """The findings of one tool in one case."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000"]
    done = observer.observe(command, device, case, guarded=False, timeout_s=timeout_s, tool=tool)
    if f"{_PREFIX}COMPUTE-SANITIZER" not in done.stdout:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MatbenchError(f"{tool} did not run: {said[-1] if said else 'no output'}")
    return findings(tool, done.stdout)


def findings(tool: str, output: str) -> list[str]:
    """A line for each kind of error in the sanitizer's report, and each place in the source."""
    counts: Counter[tuple[str, str]] = Counter()
    what = None
    lines = (line for line in output.splitlines() if line.startswith(_PREFIX))
    for text in (line.removeprefix(_PREFIX) for line in lines):
        if not text.startswith(" "):
            what = None
            if text.strip() and not text.startswith(_NOISE):  # without what differs by thread
                what = re.sub(r" at __shared__ 0x[0-9a-f]+", " in shared memory", text.strip(" :"))
                what = re.sub(r"^(Error|Warning|ERROR): ", "", what)
                what = re.sub(_OF_A_THREAD, "", what)
            continue
        place = re.search(r"\bat (?:.*\+0x[0-9a-f]+ in )?(\S+:\d+)", text)
        if what is not None and place:
            counts[what, place[1]] += 1
            what = None
    every = ((*place, "once" if n == 1 else f"{n:,} times") for place, n in sorted(counts.items()))
    return [f"{tool}: {what} at {where} ({times})" for what, where, times in every]
