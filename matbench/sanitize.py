"""One case under NVIDIA's compute-sanitizer, its findings with file and line.

The sanitizer watches a child Python that checks the case as always, but without guard bands: an
access outside a buffer is then one outside its allocation, which is what the sanitizer sees.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from matbench.model import Case, DeviceInfo, MatbenchError, UsageError

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PREFIX = "========= "
_NOISE = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application")
_SUBPROCESS_MODULE = "matbench.sanitize"


class Finding(msgspec.Struct, frozen=True, order=True):
    """One kind of error at one place of the source, and how often it was seen."""

    tool: str
    what: str
    where: str
    count: int

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        return f"{self.tool}: {self.what} at {self.where} ({times})"


class _Job(msgspec.Struct, frozen=True):
    device: DeviceInfo
    case: Case


def executable() -> str:
    """compute-sanitizer's path; `UsageError` says how to get it."""
    found = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if found is None:
        raise UsageError(
            "--sanitize needs compute-sanitizer; it comes with the CUDA toolkit: "
            "put the toolkit's bin folder on PATH"
        )
    return found


def run(device: DeviceInfo, case: Case, tool: str, timeout_s: float) -> list[Finding]:
    """What one tool finds in one case; empty when it finds nothing."""
    command = [executable(), "--tool", tool, "--print-limit", "1000"]
    with tempfile.TemporaryDirectory(prefix="matbench-") as folder:
        job = Path(folder) / "case"
        job.write_bytes(msgspec.msgpack.encode(_Job(device, case)))
        command += [sys.executable, "-m", _SUBPROCESS_MODULE, str(job)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except subprocess.TimeoutExpired:
            raise MatbenchError(
                f"{tool} took longer than {timeout_s:g} s on {case.label} (see --timeout)"
            ) from None
    if f"{_PREFIX}COMPUTE-SANITIZER" not in done.stdout:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MatbenchError(f"{tool} did not run: {said[-1] if said else 'it said nothing'}")
    return findings(tool, done.stdout)


def findings(tool: str, output: str) -> list[Finding]:
    """The sanitizer's report as findings, equal ones counted together."""
    counts: Counter[tuple[str, str]] = Counter()
    what = None
    for line in output.splitlines():
        if not line.startswith(_PREFIX):
            continue
        text = line[len(_PREFIX) :]
        if not text.startswith(" "):
            is_noise = text.startswith(_NOISE) or not text.strip()
            what = None if is_noise else _without_addresses(text)
            continue
        place = re.search(r"\bat (?:.*\+0x[0-9a-f]+ in )?(\S+:\d+)", text)
        if what is not None and place:
            counts[what, place[1]] += 1
            what = None
    return sorted(Finding(tool, what, where, n) for (what, where), n in counts.items())


def _without_addresses(text: str) -> str:
    """An error's words without what differs from thread to thread."""
    text = re.sub(r" at __shared__ 0x[0-9a-f]+", " in shared memory", text.strip(" :"))
    text = re.sub(r"^(Error|Warning|ERROR): ", "", text)
    return re.sub(r" in block \(\d+,\d+,\d+\)| (block|by thread) \(\d+,\d+,\d+\)", "", text)


def _child(path: str) -> None:
    """What the sanitizer watches."""
    from matbench import backends, bench
    from matbench.cache import Cache

    job = msgspec.msgpack.decode(Path(path).read_bytes(), type=_Job)
    cache = Cache()
    backend = backends.open_backend(job.device, cache)
    session = bench.Session(backend, cache, bench.Options(timed=False, guarded=False))
    try:
        session.measure(job.case)
    finally:
        session.close()


if __name__ == "__main__":
    _child(sys.argv[1])
