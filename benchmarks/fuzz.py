"""Random front matter, expressions, sizes, settings and result files: only clean errors.

A clean error is matbench's own (`MatbenchError`), with a message. Anything else, an input that
takes longer than a second, and one that takes all memory are findings; each is printed once, with
the shortest input that showed it.
"""

from __future__ import annotations

import argparse
import json
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
import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from matbench import workloads
from matbench.analysis import comparison
from matbench.backends import host
from matbench.errors import MatbenchError
from matbench.kernelfile import catalogue, cuda_c, expressions, sweep
from matbench.model import DeviceInfo, Environment, Kernel, Outcome, Problem
from matbench.records import results
from matbench.show import report

SLOW_S = 1.0
HANG_S = 20
MEMORY_BYTES = 8 * 1024**3
EXAMPLES_A_TURN = 200


def options() -> argparse.ArgumentParser:
    parser = common.parser(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target alone")
    return parser


# -- what is drawn -------------------------------------------------------------------------------

KERNELS = [kernel for kernel in catalogue.builtin() if kernel.source]
NAMES = [
    "M",
    "N",
    "K",
    "TILE",
    "A",
    "B",
    "C",
    "max_threads_per_block",
    "x",
    "__import__",
    "ceil_div",
]
NUMBERS = st.one_of(
    st.integers(-3, 40),
    st.integers(),
    st.sampled_from([2**31 - 1, 2**31, 2**63, 2**64, 10**30, 10**300]),
    st.floats(),
)
TEXT = st.text(max_size=40) | st.text("0123456789xX,.-+eE_ \t\n", max_size=30)


def operations(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of expressions, some of them none."""
    two = st.sampled_from(
        "+ - * / // % ** == != < <= > >= and or if<< & | , := is in".split()  # noqa: SIM905
    )
    return st.one_of(
        st.tuples(inner, two, inner).map(" ".join),
        inner.map(lambda a: f"({a})"),
        inner.map(lambda a: f"-{a}"),
        inner.map(lambda a: f"not {a}"),
        st.tuples(st.sampled_from(NAMES), st.lists(inner, max_size=4)).map(
            lambda call: f"{call[0]}({', '.join(call[1])})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} if {t[1]} else {t[2]}"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]}[{t[1]}]"),
        inner.map(lambda a: f"({a}).__class__"),
        inner.map(lambda a: f"[{a} for x in {a}]"),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(NAMES), NUMBERS.map(repr), st.just("9**9**9")),
    operations,
    max_leaves=12,
) | st.text(max_size=400)
DEEP = st.tuples(st.sampled_from(["(", "-", "not ", "1+(", "max(1,"]), st.integers(1, 400)).map(
    lambda drawn: drawn[0] * drawn[1] + "1" + ")" * (drawn[1] if "(" in drawn[0] else 0)
)

TOML_VALUES = st.recursive(
    st.one_of(
        st.integers(-5, 2**40).map(str),
        EXPRESSIONS.map(lambda text: json.dumps(text)),
        st.floats().map(lambda x: {"inf": "inf", "-inf": "-inf"}.get(repr(x), repr(x))),
        st.sampled_from(["true", "false", "1979-05-27", "07:32:00", "''", "[]", "{}", "nan"]),
        st.text(max_size=10),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda item: f"{{ a = {item} }}"),
    ),
    max_leaves=5,
)
KEYS = st.sampled_from(
    [
        "name", "summary", "group", "entry", "args", "requires", "precision", "error_constant",
        "deterministic", "block", "grid", "shared_bytes", "where", "TILE", "THREADS", "flops",
        "[launch]", "[sweep]", "[tune]", "[model]", "launch", "sweep", "nmae", '"', "a.b", "[[x]]",
    ]
)  # fmt: skip
TOML_LINES = st.one_of(
    st.tuples(KEYS, TOML_VALUES).map(lambda kv: kv[0] if "[" in kv[0] else f"{kv[0]} = {kv[1]}"),
    st.text(max_size=30),
)


@st.composite
def kernel_files(draw: st.DrawFn) -> bytes:
    """A kernel file that comes with matbench, changed in a few lines; or anything."""
    lines = draw(st.sampled_from(KERNELS)).source.splitlines()
    end = lines.index("// ///")
    for _ in range(draw(st.integers(1, 4))):
        where = draw(st.integers(0, min(len(lines) - 1, end + 25)))
        comment = "// " if where <= end else ""
        change = draw(st.sampled_from(["insert", "replace", "value", "delete", "cut", "swap"]))
        if change == "insert":
            lines.insert(where, comment + draw(TOML_LINES))
        elif change == "replace":
            lines[where] = comment + draw(TOML_LINES)
        elif change == "value" and " = " in lines[where]:
            lines[where] = lines[where].split(" = ")[0] + " = " + draw(TOML_VALUES)
        elif change == "delete":
            del lines[where]
        elif change == "cut":
            lines[where] = lines[where][: draw(st.integers(0, 40))]
        else:
            other = draw(st.integers(0, len(lines) - 1))
            lines[where], lines[other] = lines[other], lines[where]
        end = min(end, len(lines) - 1)
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        text = text[: draw(st.integers(0, len(text)))] + draw(st.binary(max_size=20)) + text
    return text


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
        st.sampled_from([1e308, -1.0, 0, 2**63, "measured", "outcome", "\x1b[31m", "<b>", "=1+1"]),
    ),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip


def example_records() -> list[Any]:
    """The objects of a small file of records that is right."""
    device = host.device()
    problem = Problem(8, 9, 10)
    outcome = Outcome(
        kernel="tiled", sha256="ab" * 32, group="tutorial", params={"TILE": 16}, problem=problem,
        backend="cuda", device="GPU", device_kind="gpu", status="measured",
        samples_ns=tuple(1000.0 + i for i in range(12)), median_ns=1005.5,
        interval_ns=(1002.0, 1009.0), timing_mode="cold", settled=True, max_rel_err=1e-6,
        avg_rel_err=1e-7, bound_ratio=0.1, block_median_ns=900.0, sm_mhz=1980.0,
    )  # fmt: skip
    skipped = msgspec.structs.replace(outcome, status="skipped", reason="no", samples_ns=())
    environment = results.environment(["run"], [device], {"seed": 0})
    return [msgspec.to_builtins(record) for record in (environment, outcome, skipped)]


RECORDS = example_records()


@st.composite
def record_files(draw: st.DrawFn) -> bytes:
    """A right file with fields changed, added and left out; lines torn, doubled, out of order."""
    lines = []
    for record in RECORDS if draw(st.booleans()) else draw(st.lists(st.sampled_from(RECORDS))):
        changed: dict[str, Any] = json.loads(json.dumps(record))
        for _ in range(draw(st.integers(0, 3))):
            place = changed
            key = draw(st.sampled_from(sorted(place)))
            inner = place[key]
            if isinstance(inner, dict) and inner and draw(st.booleans()):
                place, key = inner, draw(st.sampled_from(sorted(inner)))
            if draw(st.integers(0, 4)) == 0:
                place.pop(key)
            else:
                place[key] = draw(JSON_VALUES)
            if draw(st.integers(0, 9)) == 0:
                changed[draw(st.text(max_size=8))] = draw(JSON_VALUES)
            if not changed:
                break
        lines.append(json.dumps(changed, ensure_ascii=draw(st.booleans())))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    how = draw(st.integers(0, 5))
    if how == 0:
        data = data[: draw(st.integers(0, len(data)))]
    if how == 1:
        data += draw(st.binary(max_size=30))
    if how == 2:
        data = draw(st.binary(max_size=60)) + data
    return data + (b"\n" if draw(st.booleans()) else b"")


# -- what is tried -------------------------------------------------------------------------------

GPU = DeviceInfo(
    "cuda", 0, "GPU", "gpu", "1", "1", {**catalogue.DEVICE_LIMITS}, compute_capability=(9, 0)
)


def try_kernel_file(folder: Path, data: bytes) -> None:
    """Load it, make its cases, and all that is compiled of it."""
    path = folder / "kernel.cu"
    path.write_bytes(data)
    kernel = catalogue.load(path)
    workload = workloads.get(kernel.workload)
    for numbers in ((1, 1, 1), (1000, 999, 1001), (2**30, 2**30, 2**30)):
        problem = Problem(*numbers, workload=kernel.workload)
        for case in sweep.cases([kernel], [problem], {}, GPU)[:50]:
            for text in case.kernel.args:
                if text not in workload.buffers and case.launch is not None:
                    sizes = workload.values(problem)
                    expressions.evaluate(text, {**GPU.limits, **case.params, **sizes})
    parts = (kernel.source, kernel.path, kernel.entry, kernel.parameters)
    cuda_c.cuda_unit(kernel.source, kernel.path)
    cuda_c.cuda_clocked_unit(*parts)
    cuda_c.cuda_staggered_unit(*parts)
    cuda_c.opencl_unit(kernel.source, kernel.path, kernel.entry)
    cuda_c.opencl_clocked_unit(*parts, "clock()")


def try_expression(folder: Path, text: str) -> None:
    values = {"M": 1000, "N": 2**30, "K": 1, "TILE": 16, "max_threads_per_block": 1024}
    expressions.names_in(text, values)
    expressions.evaluate(text, values)
    expressions.whole(text, values)


def try_sizes(folder: Path, text: str) -> None:
    for m, n, k in sweep.parse_sizes(text):
        assert 0 < min(m, n, k) <= max(m, n, k) <= sweep.MAX_SIZE


def try_settings(folder: Path, drawn: tuple[list[str], str | None, Kernel]) -> None:
    texts, tiles, kernel = drawn
    overrides = sweep.parse_settings(texts, tiles, [kernel])
    sweep.cases([kernel], [Problem(64, 64, 64)], overrides, GPU)


def try_record_file(folder: Path, data: bytes) -> None:
    """Read it, print it in every kind of format, go on with it, compare it with itself."""
    path = folder / "records.jsonl"
    path.write_bytes(data)
    environments, outcomes = results.read(path)
    kept = results.without_retried(outcomes)
    results.finished(outcomes)
    made = report.outcome_report(kept, environments)
    for fmt in ("csv", "json", "github", "html", "latex", "plain"):
        report.text(made, fmt)
    report.renderables(made, 80)
    both = environments, outcomes
    comparison.compare_records(both, both, ("old", "new"), 0.01)
    with results.RecordWriter(path, msgspec.convert(RECORDS[0], Environment), "resume"):
        pass
    assert results.read(path)[1] == outcomes


VALUES = st.one_of(TEXT, st.lists(NUMBERS.map(str), max_size=4).map(",".join))
TARGETS: dict[str, tuple[Callable[[Path, Any], None], st.SearchStrategy[Any]]] = {
    "front matter": (try_kernel_file, kernel_files()),
    "kernel files": (try_kernel_file, st.binary(max_size=200)),
    "expressions": (try_expression, EXPRESSIONS | DEEP),
    "sizes": (
        try_sizes,
        TEXT | st.lists(st.lists(NUMBERS.map(str), max_size=4).map("x".join)).map(",".join),
    ),
    "settings": (
        try_settings,
        st.tuples(
            st.lists(
                TEXT
                | st.tuples(st.sampled_from(["TILE", "THREADS", "BM", "tile", ""]), VALUES).map(
                    "=".join
                ),
                max_size=3,
            ),
            st.none() | VALUES,
            st.sampled_from(KERNELS),
        ),
    ),
    "result files": (try_record_file, record_files()),
}


# -- the loop ------------------------------------------------------------------------------------


class Findings:
    """Inputs tried, clean errors seen, and what was not clean, each kind once."""

    def __init__(self) -> None:
        self.inputs = 0
        self.refused = 0
        self.slowest_s = 0.0
        self.found: dict[tuple[str, str], tuple[int, str, str]] = {}

    def attempt(self, function: Callable[[Path, Any], None], folder: Path, drawn: Any) -> None:
        self.inputs += 1
        start = time.process_time()
        try:
            with alarm(HANG_S):
                function(folder, drawn)
        except MatbenchError as error:
            self.refused += 1
            if not str(error).strip():
                self.keep(type(error).__name__, "an error without a message", drawn)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if "/matbench/" in f.filename] or [frames[-1]]
            place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
            self.keep(f"{type(error).__name__} at {place}", str(error), drawn)
        spent = time.process_time() - start
        self.slowest_s = max(self.slowest_s, spent)
        if spent > SLOW_S:
            self.keep("slow", f"{spent:.1f} s", drawn)

    def keep(self, kind: str, message: str, drawn: Any) -> None:
        text = repr(drawn)
        key = kind, message if kind != "slow" and len(message) < 60 else ""
        count, shortest, said = self.found.get(key, (0, text, message))
        if len(text) < len(shortest):
            shortest, said = text, message
        self.found[key] = count + 1, shortest, said


class HangError(Exception):
    """An input took longer than anything should."""


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError(f"no end after {seconds} s")

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
    def turn(drawn: Any) -> None:
        found.attempt(function, folder, drawn)

    turn()


def main() -> None:
    chosen = options().parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    findings = common.Findings("fuzz", chosen, host.device(), timed=False)
    found = {name: Findings() for name in TARGETS if chosen.target in (None, name)}
    end = time.monotonic() + 60 * chosen.minutes
    turn = chosen.seed
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for name, one in found.items():
                fuzz(name, turn, EXAMPLES_A_TURN, one, Path(folder))
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
