"""Tries random kernel files, records, sizes, command lines and variables: only clean errors?

A clean error is a `MatbenchError` with a message, or for a command an exit code from 0 to 3.
Anything else is a finding, as are inputs that take over a second of CPU time or all memory, and
output that controls a terminal. Each is printed once, with the shortest input that showed it. No
kernel or compiler is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import common
import fuzz_inputs as drawn
import msgspec
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from matbench import backends, cli, workloads
from matbench.analysis import comparison
from matbench.backends import host
from matbench.cli.console import open_console
from matbench.errors import MatbenchError, UsageError
from matbench.kernelfile import catalogue, expressions, front_matter, instrument, opencl_c, sweep
from matbench.kernelfile import sizes as kernel_sizes
from matbench.measure import worker
from matbench.measure.outcomes import Found, compared, not_measured
from matbench.model import Case, DeviceInfo, Kernel, Problem
from matbench.records import reading, resuming
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.records.writing import RecordWriter
from matbench.show import comparisons, formats, outcomes, safe, terminal

SLOW_S = 1.0
HANG_S = 20
MEMORY_BYTES = 8 * 1024**3
EXAMPLES_A_TURN = 1000
#: For targets whose inputs take a good part of a second each.
SLOW_EXAMPLES_A_TURN = 40


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=sorted(TARGETS), help="try only this target")
    return parser


# -- targets -------------------------------------------------------------------------------------

GPU = DeviceInfo(
    "cuda", 0, "GPU", "gpu", "1", "1", {**front_matter.DEVICE_LIMITS}, compute_capability=(9, 0)
)


def try_kernel_file(folder: Path, data: bytes) -> None:
    """Load it, and make its cases and its generated sources."""
    path = folder / "kernel.cu"
    path.write_bytes(data)
    kernel = catalogue.load(path)
    workload = workloads.get(kernel.workload)
    for numbers in ((1, 1, 1), (1000, 999, 1001), (2**30, 2**30, 2**30)):
        problem = Problem(*numbers, workload=kernel.workload)
        for case in sweep.cases([kernel], [problem], {}, GPU)[:50]:
            for text in case.kernel.args:
                if text not in workload.buffers and case.launch is not None:
                    sizes = kernel.values(problem)
                    expressions.evaluate(text, {**GPU.limits, **case.params, **sizes})
    instrument.plain_unit(kernel)
    instrument.clocked_unit(kernel)
    instrument.staggered_unit(kernel)
    opencl_c.plain_unit(kernel)
    opencl_c.clocked_unit(kernel, "clock()")


def try_expression(folder: Path, text: str) -> None:
    values = {"M": 1000, "N": 2**30, "K": 1, "TILE": 16, "max_threads_per_block": 1024}
    expressions.names_in(text, values)
    expressions.evaluate(text, values)
    expressions.whole(text, values)


def try_sizes(folder: Path, text: str) -> None:
    for size in kernel_sizes.parse_sizes(text):
        assert 0 < min(size) <= max(size) <= kernel_sizes.MAX_SIZE


def try_settings(folder: Path, given: tuple[list[str], Kernel]) -> None:
    texts, kernel = given
    overrides = sweep.parse_settings(texts, [kernel])
    sweep.cases([kernel], [Problem(64, 64, 64)], overrides, GPU)


def shown(report: Any) -> None:
    """Print it in every format; nothing in it may control a terminal."""
    for fmt in ("csv", "json", "github", "html", "latex", "plain", "tsv"):
        harmless(formats.text(report, fmt))
    console = open_console()
    with console.capture() as captured:
        for part in terminal.renderables(report, 80):
            console.print(part)
    harmless(captured.get())


def harmless(text: str) -> None:
    assert safe.text(text) == text, f"commands a terminal: {text!r:.200}"


def try_record_file(folder: Path, data: bytes) -> None:
    """Read it, print it in every format, resume it, and compare it with itself."""
    path = folder / "records.jsonl"
    path.write_bytes(data)
    environments, found = reading.read(path)
    kept = resuming.without_retried(found)
    resuming.finished(found)
    shown(outcomes.report(kept, environments))
    diffed((environments, found), (environments, found))
    with RecordWriter(path, msgspec.convert(drawn.RECORDS[0], Environment), "resume"):
        pass
    assert reading.read(path)[1] == found


def try_diff(folder: Path, given: tuple[bytes, bytes, str]) -> None:
    """Compare two files, in every format."""
    files = []
    old, new, name = given
    for number, data in enumerate((old, new)):
        path = folder / f"{number}.jsonl"
        path.write_bytes(data)
        files.append(reading.read(path))
    diffed(files[0], files[1], name)


def diffed(old: Any, new: Any, name: str = "new") -> None:
    joined = comparison.compare_records(old, new, ("old", name), 0.01)
    shown(comparisons.report(joined.records, new[0]))
    comparison.comparable(joined)
    for record in joined.records:
        comparison.is_too_slow(record, 0.03)


# -- command lines -------------------------------------------------------------------------------


def no_case(self: worker.Worker, case: Case, *_: Any, **__: Any) -> Any:
    return Found(not_measured(case, self.device, "skipped", "for this test"))


def no_look(self: worker.Worker, case: Case, *_: Any, **__: Any) -> Outcome:
    return not_measured(case, self.device, "skipped", "for this test")


def no_comparison(self: worker.Worker, first: Case, second: Case, *_: Any) -> Any:
    both = (not_measured(case, self.device, "skipped", "for this test") for case in (first, second))
    return compared(*both)


def run_nothing() -> None:
    """Keep commands from starting workers and compilers from now on."""
    worker.Worker.measure = worker.Worker.clock_blocks = no_case  # type: ignore[method-assign]
    worker.Worker.look = no_look  # type: ignore[method-assign]
    worker.Worker.compare = no_comparison  # type: ignore[assignment, method-assign]
    worker.Worker.start = lambda self: None  # type: ignore[method-assign]
    worker.Crew.build_ahead = lambda *_: None  # type: ignore[method-assign]
    backends.compiled_resources = lambda *_: None


def try_command_line(
    folder: Path, words: list[str], variables: dict[str, str] | None = None
) -> None:
    """Run it in its own folder, which contains some files to read."""
    for name in ("old.jsonl", "new.jsonl"):
        (folder / name).write_text("\n".join(map(json.dumps, drawn.RECORDS)))
    (folder / "mine.cu").write_text(drawn.KERNELS[0].source)
    before = Path.cwd()
    os.chdir(folder)
    try:
        own = {"MATBENCH_STATE_DIR": str(folder / "state"), "MATBENCH_CACHE_DIR": CACHE.name}
        done = CliRunner(env=own | (variables or {})).invoke(cli.main, words, prog_name="matbench")
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if words[0] != "show":  # in a pipe, sources are printed unchanged
        harmless(OWN_CODES.sub("", done.output))
    if done.exit_code == 2:
        raise UsageError(done.stderr)
    assert 0 <= done.exit_code <= 3, f"exit code {done.exit_code}"


def try_variables(folder: Path, given: tuple[dict[str, str], list[str]]) -> None:
    """Run any command with any values of the environment variables that it or a library reads."""
    variables, words = given
    try_command_line(folder, words, variables)


CACHE = tempfile.TemporaryDirectory()
#: The escape codes of rich's tables and progress bar.
OWN_CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[hl]|\x1b\[[0-9]*[AK]|\r(?=\x1b|\n)")

TARGETS: dict[str, tuple[Callable[[Path, Any], None], st.SearchStrategy[Any]]] = {
    "front matter": (try_kernel_file, drawn.kernel_files()),
    "kernel files": (try_kernel_file, st.binary(max_size=200)),
    "expressions": (try_expression, drawn.EXPRESSIONS | drawn.DEEP),
    "sizes": (try_sizes, drawn.SIZES),
    "settings": (try_settings, drawn.SETTINGS),
    "record files": (try_record_file, drawn.record_files()),
    "diff": (try_diff, st.tuples(drawn.record_files(), drawn.record_files(), drawn.LETTERS)),
    "command lines": (try_command_line, drawn.command_lines()),
    "variables": (try_variables, drawn.variables()),
}


# -- the loop ------------------------------------------------------------------------------------


class Findings:
    """Counts of inputs and clean errors, and each kind of finding once."""

    def __init__(self) -> None:
        self.inputs = 0
        self.refused = 0
        self.slowest_s = 0.0
        self.found: dict[tuple[str, str], tuple[int, str, str]] = {}

    def attempt(self, function: Callable[[Path, Any], None], folder: Path, given: Any) -> None:
        self.inputs += 1
        start = time.process_time()
        try:
            with alarm(HANG_S):
                function(folder, given)
        except MatbenchError as error:
            self.refused += 1
            if not str(error).strip():
                self.keep(type(error).__name__, "an error without a message", given)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if "/matbench/" in f.filename] or [frames[-1]]
            place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
            self.keep(f"{type(error).__name__} at {place}", str(error), given)
        spent = time.process_time() - start
        self.slowest_s = max(self.slowest_s, spent)
        if spent > SLOW_S:
            self.keep("slow", f"{spent:.1f} s", given)

    def keep(self, kind: str, message: str, given: Any) -> None:
        text = repr(given)
        key = kind, message if kind != "slow" and len(message) < 60 else ""
        count, shortest, said = self.found.get(key, (0, text, message))
        if len(text) < len(shortest):
            shortest, said = text, message
        self.found[key] = count + 1, shortest, said


class HangError(Exception):
    """An input took too long."""


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(target: str, number: int, examples: int, found: Findings, folder: Path) -> None:
    """One turn of one target."""
    function, strategy = TARGETS[target]

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def turn(given: Any) -> None:
        found.attempt(function, folder, given)

    turn()


def main() -> None:
    chosen = options().parse_args()
    run_nothing()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    findings = common.Findings("fuzz", chosen, host.device(), timed=False)
    found = {name: Findings() for name in TARGETS if chosen.target in (None, name)}
    end = time.monotonic() + 60 * chosen.minutes
    turn = chosen.seed
    with tempfile.TemporaryDirectory() as folder:
        # Imports must not count as the time of the first input.
        import scipy.special
        import scipy.stats  # noqa: F401

        try_record_file(Path(folder), "\n".join(map(json.dumps, drawn.RECORDS)).encode())
        while time.monotonic() < end:
            for name, one in found.items():
                is_slow = name in ("command lines", "variables")
                examples = SLOW_EXAMPLES_A_TURN if is_slow else EXAMPLES_A_TURN
                fuzz(name, turn, examples, one, Path(folder))
            turn += 1
    findings.table(
        f"{chosen.minutes:g} minutes, {turn - chosen.seed} turns",
        [
            {
                "target": name,
                "inputs": one.inputs,
                "refused cleanly": one.refused,
                "accepted": one.inputs - one.refused - sum(n for n, *_ in one.found.values()),
                "slowest s": one.slowest_s,
                "findings": len(one.found),
            }
            for name, one in found.items()
        ],
    )
    rows: list[dict[str, Any]] = [
        {"target": name, "what": kind, "times": count, "message": said, "shortest": shortest}
        for name, one in found.items()
        for (kind, _), (count, shortest, said) in one.found.items()
    ]
    for row in rows:
        print(f"{row['target']}: {row['what']}, {row['times']} times: {row['message']}")
        print(f"    {row['shortest'][:2000]}\n")
    findings.keep("Findings", rows)
    findings.figures += [
        common.Figure("inputs", sum(one.inputs for one in found.values()), "inputs"),
        common.Figure("errors that are not clean, hangs", len(rows), "kinds", 0),
    ]
    findings.close()


if __name__ == "__main__":
    main()
