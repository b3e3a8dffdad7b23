"""Functions in Python, as users run them on a CPU: measured, or refused with a reason."""

from __future__ import annotations

import ctypes
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from support.cli import QUICK, Matbench, last_run
from support.functions import begin_without_isolation, measured
from support.golden import TableRegression
from support.kernels import saved
from support.optional import present, some
from support.paths import FUNCTIONS, programs

import matbench as api
from matbench import backends
from matbench.backends import opencl
from matbench.backends.functions import calls, isolated
from matbench.backends.functions.calls import ISOLATED, TRUSTED
from matbench.backends.functions.loading import Originals
from matbench.backends.protocol import Address, Array, Backend, Work
from matbench.bench.launches import FunctionLaunches
from matbench.bench.options import Options
from matbench.bench.samples import Samples
from matbench.bench.session import Session
from matbench.cache import Cache
from matbench.errors import CaseError
from matbench.kernelfile import catalogue, sweep
from matbench.kernelfile.sizes import parse_problems
from matbench.model import Launch, Problem
from matbench.worker import comparing
from matbench.workloads import MATMUL

FILE = FUNCTIONS / "on_cpu.py"


#: Functions whose behaviour is tested here, by name.
PROGRAMS = programs(__file__)
#: The fixture `judged`: from the text of `f.py`, and what `run` takes, to the verdict.
Judged = Callable[..., api.Verdict]


@pytest.fixture(scope="module")
def judge() -> Iterator[api.Judge]:
    with api.Judge("64", backend="opencl", timeout=30, max_time=0.05) as judge:
        yield judge


@pytest.fixture
def judged(judge: api.Judge, tmp_path: Path) -> Judged:
    def run(text: str, **more: Any) -> api.Verdict:
        return judge.run(saved(tmp_path / "f.py", text), **more)

    return run


@pytest.mark.parametrize("cheat", ["lazy", "frames"])
def test_work_that_is_put_off_or_denied_is_timed(cheat: str, judge: api.Judge) -> None:
    verdict = judge.run(f"{FILE}::cheat_{cheat}")  # which takes 20 ms longer
    assert present(verdict.median_ns) > 20e6


def test_what_a_function_changes_spoils_no_reference(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "f.py", PROGRAMS["changes what NumPy computes"])
    sizes = ("--sizes", "12,13", "--seed", f"{os.getpid()}", "--backend", "opencl", *QUICK)
    matbench("run", f"{file}::f", *sizes, code=None)  # at 13, it has run before
    matbench("run", "naive-2d", *sizes, "--set", "TILE=8")
    assert {outcome.status for outcome in last_run()} == {"measured"}


def test_a_thread_stands_still_in_the_others_turn(matbench: Matbench, tmp_path: Path) -> None:
    beats, calls = tmp_path / "beats", tmp_path / "calls"
    saved(tmp_path / "leaves.py", PROGRAMS["leaves a thread"])
    saved(tmp_path / "other.py", PROGRAMS["tells when it is called"])
    sides = f"{tmp_path}/leaves.py::leaves", f"{tmp_path}/other.py::other"
    where = ("--sizes", "16", "--backend", "opencl", "--max-time", "1")
    told = matbench("compare", *sides, *where).output
    times_ns = [int(line) for line in beats.read_text().split()]
    spans_ns = [tuple(map(int, line.split())) for line in calls.read_text().splitlines()]
    assert times_ns[0] < spans_ns[-1][0]
    assert spans_ns[0][0] < times_ns[-1]
    assert not [at for at in times_ns if any(began < at < ended for began, ended in spans_ns)]
    assert "× slower" in told
    for name in ("leaves", "other"):
        assert f"{name}: {ISOLATED}" in " ".join(told.split())


@pytest.mark.parametrize(
    ("since", "wrong", "says"),
    [
        ("called", "return 0 * A", "all are 0"),
        ("turns", "return 0 * A", "wrong"),
        pytest.param("turns", "raise ValueError('late')", "Error: late", marks=pytest.mark.long),
    ],
)
def test_what_goes_wrong_at_once_or_in_its_turn_has_no_verdict(
    since: str, wrong: str, says: str, matbench: Matbench, tmp_path: Path
) -> None:
    wrongly = PROGRAMS["is wrong from then on"].replace("SINCE", since).replace("WRONG", wrong)
    g = saved(tmp_path / "g.py", PROGRAMS["knows when turns begin"])
    sides = (g, saved(tmp_path / "f.py", wrongly), "--sizes", "16")
    told = matbench("compare", *sides, "--backend", "opencl", "--format", "json", code=1).stdout
    [record] = [one for one in json.loads(told) if one["type"] == "comparison"]
    assert record["comparison"] is None
    assert record["baseline"]["status"] == "measured"
    assert record["candidate"]["status"] in ("wrong", "failed")
    assert says in record["candidate"]["reason"]


def test_a_difference_that_places_may_make_does_not_decide_between_functions(
    matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for ratio in (1.029, 1.031):
        both = [np.full(99, 1e6), np.full(99, 1e6 * ratio)]
        taken = lambda _, plan, *__, both=both, **___: (both, plan.decide(*both, 1e12))  # noqa: E731
        monkeypatch.setattr(comparing, "sample_in_turns", taken)
        names = f"{FILE}::honest", f"{FILE}::twin_elsewhere"
        told.append(matbench("compare", *names, "--sizes", "64", "--backend", "opencl").output)
    assert ["SLOWER" in said for said in told] == [False, True]


def test_what_a_function_sets_is_unset_for_others(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "f.py", PROGRAMS["sets a variable"])
    both = [f"{file}::{name}" for name in ("sets", "reads")]
    matbench("run", *both, "--sizes", "64", "--backend", "opencl")
    assert [outcome.status for outcome in last_run()] == ["measured"] * 2


def test_nothing_that_a_function_sends_is_unpickled(judged: Judged, tmp_path: Path) -> None:
    verdict = judged(PROGRAMS["sends through all connections"])
    assert not (tmp_path / "trap").exists()
    assert verdict.status == "failed"
    [line] = present(verdict.reason).splitlines()
    assert line == "the process of the function sent no answer"


@pytest.mark.parametrize(
    ("kind", "between", "is_growing"),
    [
        ("gpu", 0, True),
        ("gpu", 0.2, True),
        ("gpu", 0.5, False),
        ("gpu", 1, False),
        ("cpu", 1, True),
    ],
)
def test_memory_between_calls_is_of_others(kind: str, between: float, is_growing: bool) -> None:
    """On a GPU, where their memory is in the same number."""
    C = 1 << 20
    launches = SimpleNamespace(
        _kept_bytes=[C] * 50,
        _between_bytes=[round(between * C)] * 50,
        runnable=SimpleNamespace(result=SimpleNamespace(data=SimpleNamespace(nbytes=C))),
        backend=SimpleNamespace(info=SimpleNamespace(kind=kind)),
    )
    assert FunctionLaunches._is_growing(launches) == is_growing  # type: ignore[arg-type]


def test_no_inputs_between_trusted_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that looks at A all the time must see NaN; the function fails if it did not."""
    file = saved(tmp_path / "f.py", PROGRAMS["looks at A all the time"])
    monkeypatch.setattr("matbench.worker.worker._begin", begin_without_isolation)
    outcome = measured(catalogue.load(file), "64", max_time_s=0.05)
    assert (outcome.status, outcome.reason, outcome.notes) == ("measured", None, (TRUSTED,))


@pytest.mark.parametrize(("empty_ns", "left_ns"), [(60_000.0, 40_000), (95_000.0, 10_000)])
def test_the_time_of_an_empty_call_is_subtracted(empty_ns: float, left_ns: float) -> None:
    """But a tenth is left: this hand-over may have been shorter."""
    judged: Any = SimpleNamespace(_asked=lambda *_: (7, 100_000), empty_ns=empty_ns)
    assert isolated.Judged.call(judged) == (7, left_ns)


@pytest.mark.parametrize("trick", ["audit_hook", "patched_open"])
def test_without_isolation_tricks_gain(trick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of their own they take 5 ms, or are wrong: see `tests/kernels/functions`."""
    monkeypatch.setattr("matbench.worker.worker._begin", begin_without_isolation)
    outcome = measured(catalogue.load(Path(f"{FUNCTIONS}/tricks.py::{trick}")), "64")
    assert outcome.status == "measured"
    assert present(outcome.median_ns) < 4e6


class Memory:
    """Memory of the host, whose buffers are NumPy's arrays."""

    mapped_buffers = 0

    def mapped(self, buffer: Any) -> Address:
        self.mapped_buffers += 1
        return Address(buffer.handle.ctypes.data, buffer.handle)

    def unmap(self, place: Address) -> None:
        assert place.keeper is not None
        self.mapped_buffers -= 1

    def copy_apart(self, address: int, nbytes: int) -> None:
        self.apart = ctypes.string_at(address, nbytes)

    def copy_back(self, target: Any) -> None:
        assert self.mapped_buffers == 0, "a device may not write memory that is mapped"
        target.handle[:] = np.frombuffer(self.apart, np.float32)


@dataclass
class Words:
    handle: Any
    nbytes: int

    def view(self, offset_bytes: int, nbytes: int) -> Any:
        raise NotImplementedError


def in_this_process(folder: Path, text: str, *buffers: Any) -> Any:
    """A call of the function of this text with matrices of 4×4 numbers."""
    (folder / "f.py").write_text(text)
    function = calls.PythonFunction(catalogue.load(folder / "f.py"), {}, cast(Backend, Memory()))
    given = buffers or [np.ones(16, np.float32) for _ in "ABC"]
    arrays = [Array(Words(b, 64), "float32", (4, 4), (4, 1)) for b in given]
    return function.call(Launch((1, 1, 1), (1, 1, 1)), arrays)


def test_C_is_what_it_was_when_it_was_taken(tmp_path: Path) -> None:
    text = "import numpy as np\n\ndef f(A, B, C):\n    np.matmul(A, B, out=C)\n"
    buffers = [np.full(16, value, np.float32) for value in (1, 2, 0)]
    call = in_this_process(tmp_path, text, *buffers)
    call.run()
    call.take()
    buffers[2][:] = 5  # as a thread would that goes on
    call.give()
    assert (buffers[2] == 8).all()


def test_a_result_in_another_layout_is_copied_row_by_row_and_kept(tmp_path: Path) -> None:
    text = "import numpy as np\n\ndef f(A, B):\n    return np.asfortranarray(A @ B)\n"
    A, B = np.arange(16, dtype=np.float32), np.arange(0, 48, 3, dtype=np.float32)
    C = np.zeros(16, np.float32)
    call = in_this_process(tmp_path, text, A, B, C)
    call.run()
    rest = [np.full(16, 7, np.float32) for _ in range(100)]  # takes memory that was let go of
    call.take()
    call.give()
    assert rest
    assert (C.reshape(4, 4) == A.reshape(4, 4) @ B.reshape(4, 4)).all()


def test_only_a_first_call_that_is_long_is_worth_a_note(tmp_path: Path) -> None:
    file = saved(tmp_path / "f.py", "def f(A, B): return A @ B\n")
    function = calls.PythonFunction(catalogue.load(file), {}, cast(Backend, Memory()))
    noted = {None: (), 0.099: (), 0.1: ("first call 0.1 s",), 123.4: ("first call 123.4 s",)}
    for function.first_call_s, notes in noted.items():
        assert function.notes == (TRUSTED, *notes)


def test_all_that_judges_a_function_is_compiled_before_it_is_loaded(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process stores nothing afterwards: each process would compile it again."""
    kernel = catalogue.load(saved(tmp_path / "f.py", "import numpy\n\ndef f(A, B): return A @ B\n"))
    [problem] = parse_problems("7x9x8", MATMUL, "uniform")
    session = Session(backend, Cache(), Options(max_time_s=0.01))
    compiled: list[set[Any]] = []

    def build(*given: Any, **more: Any) -> Any:
        if given[0] is kernel:
            compiled.append({*session.kernels.programs})
        return made(*given, **more)

    made = backend.build
    monkeypatch.setattr(backend, "build", build)
    case = sweep.case(kernel, problem, {}, backend.info)
    session.prepare(problem, kernel.contract)
    assert session.measure(case).status == "measured"
    assert compiled == [{*session.kernels.programs}]


def test_a_function_is_no_part_of_a_graph(backend: Backend, tmp_path: Path) -> None:
    kernel = catalogue.load(saved(tmp_path / "f.py", "def f(A, B): return A @ B\n"))
    session = Session(backend, Cache(), Options())
    session.options = msgspec.structs.replace(session.options, graph=True)  # only on a GPU
    case = sweep.case(kernel, Problem(3, 3, 3), {}, backend.info)
    with pytest.raises(CaseError, match="a function cannot be part of a CUDA graph"):
        session.measure(case)


def test_inputs_are_complete_only_right_before_a_call(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column is missing until then, also before a block of calls."""
    kernel = catalogue.load(saved(tmp_path / "f.py", "def f(A, B): return A @ B\n"))
    session = Session(backend, Cache(), Options(max_time_s=0.01))
    case, missing = sweep.case(kernel, Problem(3, 3, 3), {}, backend.info), list[int]()
    timed_ns, set_aside = backend.timed_ns, Samples.set_aside

    def missing_numbers() -> int:
        [buffers] = present(session._prepared)._sets.values()
        return int(np.isnan(buffers.inputs[0].contents().view(np.float32)).sum())

    def looked(work: Work) -> float:
        missing.append(missing_numbers())
        work.ready()
        missing.append(missing_numbers())
        return timed_ns(work)

    def noted(*given: Any) -> Any:
        complete = set_aside(*given)
        missing.append(missing_numbers())
        return complete

    with monkeypatch.context() as patched:
        patched.setattr(backend, "timed_ns", looked)
        assert session.measure(case).status == "measured"
    assert {*zip(missing[::2], missing[1::2], strict=True)} == {(3, 0)}
    monkeypatch.setattr(Samples, "set_aside", noted)
    missing.clear()
    session.begin_turns(case, kernel.contract, 1)
    session.block(0, 1e-3)
    session.leave_turns()
    assert {*missing} == {3}


def test_a_replaced_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    originals = Originals()
    assert originals.replaced() is None
    with monkeypatch.context() as patched:
        patched.setattr(time, "perf_counter", lambda: 0.0)
        assert originals.replaced() == "time.perf_counter"
    with monkeypatch.context() as patched:
        patched.setattr(FunctionLaunches, "verify", lambda _: None)
        assert originals.replaced() == "matbench.bench.launches.FunctionLaunches.verify"
    with monkeypatch.context() as patched:
        patched.setattr(opencl, "cl", None)
        assert originals.replaced() == "matbench.backends.opencl.cl"
    assert originals.replaced() is None


def test_what_a_function_hooks_is_not_called_outside_timing(judged: Judged, tmp_path: Path) -> None:
    assert judged(PROGRAMS["hooks"]).status == "measured"
    assert not (tmp_path / "seen").exists()


def test_a_judge_keeps_the_processes_of_two_functions(judge: api.Judge) -> None:
    for function in ("honest", "twin_thread", "twin_elsewhere"):
        assert judge.run(f"{FILE}::{function}").status == "measured"
    assert len([name for _, name in judge.pool.workers if name]) == 2


def test_numba_compiles_in_the_first_call_which_is_reported_and_not_timed(judge: api.Judge) -> None:
    verdict = judge.run(FILE.with_name("with_numba.py"), sizes="100x90x80")
    [case] = verdict.cases
    assert verdict.status == "measured", verdict.reason
    [first] = [note for note in case.notes if note.startswith("first call")]
    assert float(first.split()[2]) > 0.1
    assert present(case.median_ns) < 0.1e9


@pytest.mark.usefixtures("few_probes")
def test_compare_and_check_take_a_function(matbench: Matbench) -> None:
    function = f"{FILE}::honest"
    compared = matbench(
        *("compare", "naive-2d", function, "--sizes", "64", "--backend", "opencl"),
        *("--max-time", "0.05"),
        code=None,
    )
    assert "candidate honest against baseline naive-2d" in compared.output
    assert compared.exit_code in (0, 1)
    checked = matbench("check", function, "--backend", "opencl", code=None)
    assert checked.exit_code == 0, checked.output


def test_functions_of_hosts_need_cpus(matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    info = msgspec.structs.replace(backends.choose("opencl", None), kind="gpu")
    monkeypatch.setattr(backends, "choose_all", lambda *_: [info])
    refused = matbench("compare", "naive-2d", f"{FILE}::honest", code=2)
    assert "honest runs only on the host; compare it with `--backend opencl`" in refused.output


def test_a_mistake_in_a_file_is_one_line_that_names_the_place(
    matbench: Matbench, tmp_path: Path, table_regression: TableRegression
) -> None:
    def refusal(source: str) -> str:
        file = saved(tmp_path / "f.py", source)
        [said] = matbench("run", file, "--sizes", "64", code=2).output.splitlines()
        said = re.sub("not (TOML|Python): .*", r"not \1: …", said)  # each Python has its own words
        return said.replace(str(tmp_path), "")

    table_regression("mistakes.txt", refusal)


def test_each_function_has_its_verdict(judged: Judged, table_regression: TableRegression) -> None:
    """What is declared is given, and what goes wrong is named; the next one is measured."""

    def verdict(source: str) -> str:
        found = judged(source, sizes="50x40x30")
        reason = f": {found.reason.splitlines()[0]:.80}" if found.reason else ""
        many = f" in {len(found.cases)} cases" if len(found.cases) > 1 else ""
        return f"{found.status}{many}{reason}"

    table_regression("verdicts.txt", verdict)


def test_what_goes_wrong_in_a_call_is_named(
    tmp_path: Path, table_regression: TableRegression
) -> None:
    def error(body: str) -> str:
        call = in_this_process(tmp_path, PROGRAMS["has errors of its own"].replace("BODY", body))
        with pytest.raises(CaseError) as raised:
            call.run()
            call.take()
        return raised.value.reason

    table_regression("errors.txt", error)


def test_an_array_that_is_returned_is_the_result_also_beside_C(judged: Judged) -> None:
    """It may be C itself; anything else that is returned says nothing."""
    assert judged("def f(A, B, C): return A @ B").status == "measured"
    assert judged("def f(A, B, C):\n    C[...] = A @ B\n    return C").status == "measured"
    assert judged("def f(A, B, C):\n    C[...] = A @ B\n    return True").status == "measured"
    assert judged("def f(A, B, C):\n    C[...] = A @ B\n    return 2 * C").status == "wrong"


SCALED = PROGRAMS["has scales"]


def test_operands_of_8_bits_may_have_scales(judged: Judged) -> None:
    verdict = judged(SCALED, sizes="24x40x32")
    assert verdict.status == "measured", verdict.reason
    assert judged(SCALED.replace("* of_B", "* of_B.mean()"), sizes="24x40x32").status == "wrong"
    assert judged(PROGRAMS["has results of int32"]).status == "measured"


def test_a_child_that_returns_too_does_not_measure_on(judged: Judged) -> None:
    started = time.monotonic()
    forks = "import os, numpy\n\ndef f(A, B):\n    os.fork()\n    return A @ B\n"
    assert judged(forks).status == "measured"
    assert time.monotonic() - started < 60


def test_what_runs_is_the_text_that_was_read(tmp_path: Path) -> None:
    file = saved(tmp_path / "f.py", "import numpy\n\ndef f(A, B): return A @ B\n")
    kernel = catalogue.load(file)
    file.write_text("nothing of the kind")
    assert measured(kernel, "64").status == "measured"


def test_a_file_imports_from_its_own_folder_too(judge: api.Judge, tmp_path: Path) -> None:
    folder = tmp_path / "a::b"
    folder.mkdir()
    (folder / "helper_of_f.py").write_text("def product(A, B): return A @ B\n")
    (folder / "data").write_text("1")
    (folder / "f.py").write_text(
        "from pathlib import Path\nfrom helper_of_f import product\n\n"
        "def f(A, B): return product(A, B) * int(Path(__file__).with_name('data').read_text())\n"
        "def g(A, B): return A @ B\n"
    )
    assert judge.run(f"{folder}/f.py::f").status == "measured"


@pytest.mark.parametrize("module", some(["cupy", "triton", "numba.cuda"], "numba.cuda"))
def test_a_function_for_a_gpu_is_skipped_on_a_cpu(module: str, judged: Judged) -> None:
    verdict = judged(f"import {module}\n\ndef f(A, B): return A @ B\n")
    assert verdict.status == "skipped"
    assert "cuda" in present(verdict.reason).lower()


def test_a_functions_process_stops_between_its_tasks(judge: api.Judge, tmp_path: Path) -> None:
    """A thread that it leaves behind would disturb the kernels that are timed next."""
    counted, file = tmp_path / "counted", tmp_path / "f.py"
    saved(file, PROGRAMS["counts in a thread"])
    assert judge.run(file).status == "measured"
    before = counted.stat().st_size
    assert judge.run("naive-2d").status == "measured"
    after = counted.stat().st_size
    assert 0 < after <= before + 1
    assert judge.run(file).status == "measured"
    assert counted.stat().st_size > after


def test_what_a_function_starts_stops_with_it_and_ends_with_the_run(tmp_path: Path) -> None:
    counted, file = tmp_path / "counted", tmp_path / "f.py"
    saved(file, PROGRAMS["starts a program that counts"])

    def still() -> bool:
        before = counted.stat().st_size
        time.sleep(0.2)
        return before > 0 and counted.stat().st_size == before

    with api.Judge("16", backend="opencl", max_time=0.01) as judge:
        assert judge.run(file).status == "measured"
        assert still()
        before = counted.stat().st_size
        assert judge.run(file).status == "measured"
        assert counted.stat().st_size > before
    assert still()


def test_a_function_may_use_processes_of_its_own(judged: Judged, tmp_path: Path) -> None:
    (tmp_path / "rows_of_f.py").write_text("def product(pair): return pair[0] @ pair[1]\n")
    verdict = judged(PROGRAMS["uses processes of its own"], sizes="64")
    assert (verdict.status, verdict.reason) == ("measured", None)


def test_what_matbench_imports_is_not_beside_the_function(judge: api.Judge, tmp_path: Path) -> None:
    for name in ("time", "click", "random", "numpy", "psutil", "colorsys"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit\n")
    (tmp_path / "f.py").write_text(
        "import importlib, time\n\ndef f(A, B):\n    importlib.import_module('color' + 'sys')\n"
        "    time.time()\n    return A @ B\n"
    )
    verdict = judge.run(tmp_path / "f.py", sizes="64")
    assert (verdict.status, verdict.reason) == ("measured", None)
    (tmp_path / "g.py").write_text("import random\n\ndef g(A, B): return A @ B\n")
    reason = str(judge.run(tmp_path / "g.py", sizes="64").reason)
    assert "random.py cannot be imported: " in reason
    assert "has the same name; rename one" in reason


def test_two_folders_do_not_share_a_local_module(matbench: Matbench, tmp_path: Path) -> None:
    for folder, product in {"a": "A @ B", "b": "A.dot(B)"}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "of_both.py").write_text(f"def product(A, B): return {product}\n")
        (tmp_path / folder / "f.py").write_text(
            "from of_both import product\n\ndef f(A, B): return product(A, B)\n"
        )
    files = tmp_path / "a" / "f.py", tmp_path / "b" / "f.py"
    compared = matbench("compare", *files, "--sizes", "64", "--max-time", "0.02", code=None)
    assert compared.exit_code in (0, 1)
    assert "failed" not in compared.output


def test_a_changed_local_module_is_another_function(judge: api.Judge, tmp_path: Path) -> None:
    package = tmp_path / "package_of_f"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import product\n")
    (package / "inner.py").write_text("def product(A, B): return A @ B\n")
    file = saved(
        tmp_path / "f.py", "import package_of_f\n\ndef f(A, B): return package_of_f.product(A, B)\n"
    )
    before = catalogue.load(file)
    assert [header.name for header in before.includes] == ["package_of_f/__init__.py", "inner.py"]
    other = saved(
        tmp_path / "g.py",
        "from package_of_f import inner\n\ndef g(A, B): return inner.product(A, B)\n",
    )
    assert "package_of_f/inner.py" in [header.name for header in catalogue.load(other).includes]
    assert judge.run(file).status == "measured"
    (package / "inner.py").write_text("def product(A, B): return 2 * (A @ B)\n")
    assert catalogue.load(file).sha256 != before.sha256
    assert judge.run(file).status == "wrong"


CUT = "def cut(m): return (m.copy().view('u4') & 0xffffe000).view('f4')"


@pytest.mark.usefixtures("few_probes")
@pytest.mark.parametrize(
    ("body", "says", "table"),
    [
        ("(A, B): return A @ B", "computes A·B, where A is `A`, B is `B`", []),
        ("(x, weight): return x @ weight.T", "computes A·Bᵀ, where A is `x`, B is `weight`",
         ['transpose = "NT"']),
        pytest.param("(out, lhs, rhs): numpy.matmul(lhs, rhs, out=out)",
                     "A is `lhs`, B is `rhs`, C is `out`", ['args = ["C", "A", "B"]'],
                     marks=pytest.mark.long),
        pytest.param("(a, b): return cut(a) @ cut(b)", "warning: only as exact as tf32 inputs",
                     ['precision = "tf32"'], marks=pytest.mark.long),
        pytest.param("(a, b): return a.astype(float) @ b", "A·B in float64", ['result = "float64"'],
                     marks=pytest.mark.long),
        pytest.param("(b, a): return (a @ b).astype('f8')",
                     "warning: only as exact as sums in float32",
                     ['accumulator = "float32"', 'result = "float64"'], marks=pytest.mark.long),
        ("(c, b, a): c += b @ a", "A·B + C", ["beta = 1.0"]),
    ],
)  # fmt: skip
def test_adopt_finds_out_what_is_computed(
    body: str, says: str, table: list[str], matbench: Matbench, tmp_path: Path
) -> None:
    file = saved(tmp_path / "f.py", f"import numpy\n{CUT}\ndef f{body}\n")
    told = matbench("adopt", file, "--backend", "opencl").output
    assert says in told
    pasted = "".join(re.findall(r"(?m)^# .*\n", told))
    assert {*table} <= {*pasted.replace("# ", "").splitlines()}
    assert ("put this table above the function:" in told) == bool(table)
    saved(file, file.read_text().replace("def f(", f"{pasted}def f("))
    if table:
        assert "a table above it" in matbench("adopt", file, "--backend", "opencl", code=2).output
    matbench("run", file, "--sizes", "40x30x50", "--backend", "opencl")
    assert {outcome.status for outcome in last_run()} == {"measured"}


@pytest.mark.long
def test_tune_finds_the_fastest_constant_of_a_function(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(
        tmp_path / "f.py",
        "import time\n\n# /// matbench\n# [sweep]\n# WAIT_MS = [9, 1]\n# ///\n"
        "def f(A, B, WAIT_MS):\n    time.sleep(WAIT_MS / 1000)\n    return A @ B\n",
    )
    tuned = matbench("tune", file, "--sizes", "64", "--budget", "2s", "--backend", "opencl")
    [winner] = [line for line in tuned.output.splitlines() if "winner" in line]
    assert winner.startswith("WAIT_MS=1 ")
