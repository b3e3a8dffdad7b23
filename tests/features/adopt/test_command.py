"""`matbench adopt`: foreign files get a correct table, or none and a reason."""

from __future__ import annotations

import errno
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support import toml
from support.cli import QUICK, Matbench, Refusal, last_run
from support.golden import TableRegression
from support.kernels import GOOD_BODY, KernelWriter, changed, plain, saved, text_of
from support.paths import FOREIGN
from support.signatures import generated

from matbench import files
from matbench.bench.session import Session
from matbench.cli.judge import Judge
from matbench.errors import BuildError, CaseError, MatbenchError, OutOfMemoryError
from matbench.features.adopt import probing, search, trials
from matbench.features.adopt.guess import Adopted
from matbench.features.adopt.probing import ProbeResult, ProductForm
from matbench.features.adopt.trials import AdoptTrials
from matbench.kernelfile import catalogue, sweep
from matbench.model import Case, DeviceInfo, Problem
from matbench.records.outcome import Outcome
from matbench.worker.builders import Builders
from matbench.worker.worker import LateError, Worker

pytestmark = pytest.mark.usefixtures("few_sizes")

#: Outside of the fixture `few_sizes`.
MOST_OPERATIONS = search._MOST_OPERATIONS


#: The fixture `adopt`: from a text, or the name of a foreign file, to the output and the table.
Adopt = Callable[..., tuple[str, dict[str, Any]]]


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copy(FOREIGN / name, folder))


def table_of(path: Path) -> dict[str, Any]:
    return toml.table(path.with_suffix(".toml"))


@pytest.fixture
def adopt(tmp_path: Path, matbench: Matbench) -> Adopt:
    """Adopts a text as `mine.cu`, or a copy of a foreign file."""

    def adopted(source: str, *words: str) -> tuple[str, dict[str, Any]]:
        path = tmp_path / "mine.cu" if "\n" in source else copied(source, tmp_path)
        if "\n" in source:
            path.write_text(source)
        return matbench("adopt", path, *words).stdout, table_of(path)

    return adopted


def test_a_file_with_front_matter_is_left_alone(tmp_path: Path, matbench: Matbench) -> None:
    path = copied("textbook.cu", tmp_path)
    path.write_text(f"// /// matbench\n// ///\n{path.read_text()}")
    for more in ([], ["--force"]):
        said = matbench("adopt", path, *more, code=2).stderr
        assert f"{path}: contains front matter; edit that, or remove it first" in said
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("own_state")
def test_a_table_is_replaced_only_by_force(tmp_path: Path, matbench: Matbench) -> None:
    """Also beside a file that has the name of a built-in kernel."""
    path = copied("textbook.cu", tmp_path).rename("tiled")
    table = path.with_suffix(".toml")
    table.write_text("kept = true\n")
    assert "exists; use --force to replace it" in matbench("adopt", path, code=2).stderr
    assert table.read_text() == "kept = true\n"
    assert "next: matbench run ./tiled\n" in matbench("adopt", path, "--force").stdout
    assert table_of(path)["args"] == ["A", "B", "C", "N"]
    assert ",./tiled," in matbench("run", "./tiled", "--sizes=16", *QUICK, "--format=csv").stdout


def test_others_write(tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = copied("textbook.cu", tmp_path)
    table, source = path.with_suffix(".toml"), path.read_text()
    adopt = search.adopt
    results: list[Adopted] = []

    def written(to: Path, text: str) -> None:
        def adopted(*arguments: Any) -> Adopted:
            if not results:
                results.append(adopt(*arguments))
            to.write_text(text)
            return results[0]

        monkeypatch.setattr(search, "adopt", adopted)

    written(table, "mine = true\n")
    assert "exists; use --force to replace it" in matbench("adopt", path, code=2).stderr
    assert table.read_text() == "mine = true\n"
    table.unlink()
    written(path, f"{source}// mine\n")
    path.write_text(source)
    assert "changed during the trials" in matbench("adopt", path, code=2).stderr
    assert path.read_text() == f"{source}// mine\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_that_cannot_be_written_is_printed(
    tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "replace", full)
    path = saved(tmp_path / "mine.cu", GOOD_BODY.replace("ENTRY", "mine").replace("TILE", "8"))
    told = matbench("adopt", path, code=2).stderr
    assert "mine.toml: cannot be written: No space left on device\n" in told
    assert '    entry = "mine"\n' in told
    assert "    [launch]\n    block = [8, 8]\n" in told


def test_a_link_is_not_followed(tmp_path: Path, matbench: Matbench) -> None:
    path = copied("textbook.cu", tmp_path)
    elsewhere = tmp_path / "elsewhere"
    path.with_suffix(".toml").symlink_to(elsewhere)
    assert "exists" in matbench("adopt", path, code=2).stderr
    assert "not a regular file" in matbench("adopt", path, "--force", code=2).stderr
    assert not elsewhere.exists()


def test_the_first_right_kernel_is_taken_and_others_are_named(adopt: Adopt, tmp_path: Path) -> None:
    path = tmp_path / "several.cu"
    output, _ = adopt(path.name)
    assert "`fill` takes 1 pointer, not A, B and C" in output
    assert f"wrote {path.with_suffix('.toml')}, for `gemm_naive`" in output
    assert f"for `gemm_tiled`: matbench adopt {path} --entry gemm_tiled --force" in output


def test_a_kernel_in_a_header_is_for_its_includer(tmp_path: Path, matbench: Matbench) -> None:
    copied("textbook.cu", tmp_path).rename(tmp_path / "textbook.cuh")
    path = saved(tmp_path / "main.cu", '#include "textbook.cuh"\nint main() { return 0; }\n')
    assert "`MatrixMulKernel` computes A·B" in matbench("adopt", path).stdout
    assert not (tmp_path / "textbook.toml").exists()
    matbench("run", path, "--sizes", "48", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]


def test_a_kernel_whose_types_are_those_of_its_includer_is_left_to_a_launcher(
    tmp_path: Path, matbench: Matbench, refusal: Refusal
) -> None:
    path = tmp_path / "mine.cuh"
    path.write_text("__global__ void mine(const real *A, const real *B, real *C, int N) {}\n")
    assert "A points to `real`" in refusal("adopt", path)
    (tmp_path / "main.cu").write_text(
        'using real = float;\n#include "mine.cuh"\n'
        "void run(real *A, real *B, real *C, int N) { mine<<<N, N>>>(A, B, C, N); }\n"
    )
    said = matbench("adopt", path, code=1).stdout
    assert "A points to `real`" in said
    assert "`run` on the host: cannot be called here: " in said


def test_no_call_is_tried_after_one_that_was_right_once(tmp_path: Path, matbench: Matbench) -> None:
    path, calls = tmp_path / "mine.cpp", tmp_path / "calls"
    count = f'if (FILE *file = fopen("{calls}", "a")) fprintf(file, "%d ", K), fclose(file);'
    keeps = changed(text_of("keeps.cpp"), ("if (rows != M)", f"{count}\n  if (rows == 0)"))
    path.write_text(f"#include <cstdio>\n{keeps}")
    matbench("adopt", path, "--entry", "host keeps", code=1)
    assert {*calls.read_text().split()} == {"320", "64"}, "of no other order of sizes"


@pytest.mark.parametrize(
    ("is_named", "place"),
    [(True, "main.cu"), pytest.param(False, "src/launch.cu", marks=pytest.mark.long)],
)
def test_launch_elsewhere(is_named: bool, place: str, tmp_path: Path, matbench: Matbench) -> None:
    text = (FOREIGN / "shared-attribute.cu").read_text(encoding="utf-8")
    kernel, launcher = text.split("void launch_gemm_staged")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "src").mkdir()
    path = saved(tmp_path / "kernels" / "staged.cu", kernel)
    launcher = launcher if is_named else launcher.replace("gemm_staged", "other")
    (tmp_path / place).write_text(f"void launch_gemm_staged{launcher}")
    output = matbench("adopt", path, code=None).stdout
    assert ("blocks of 48, correct" in output) == is_named
    assert ("; no launch of this kernel was found" in output) != is_named
    if is_named:  # the search is the same, and long where it ends without a launch
        path.with_suffix(".toml").unlink()
        tiles = "where=M % 32 == 0, N % 48 == 0, K % 16 == 0"
        matbench("run", path, "--adopt", "--contract", tiles, "--sizes", "96", *QUICK)


def test_formulas_hold_at_other_values(adopt: Adopt, tmp_path: Path, matbench: Matbench) -> None:
    _, table = adopt("sgemm-2d-tiles.cuh")
    assert table["launch"]["block"] == ["BM * BN // (TM * TN)"]
    assert table["tune"]["BK"] == [4, 8, 16]
    assert table["launch"]["where"] == ["M % BM == 0", "N % BN == 0", "K % BK == 0"]
    other = ("--set", "BM=128", "--set", "BK=16", "--set", "TN=4")
    matbench("run", tmp_path / "sgemm-2d-tiles.cuh", "--sizes", "128x64x48", *other, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


def test_atomics_elsewhere_than_in_C_need_no_claim(adopt: Adopt) -> None:
    counts = "__shared__ int threads; atomicAdd(&threads, 1);\n    if ("
    _, table = adopt(plain().replace("if (", counts, 1))
    assert "deterministic" not in table


FAULTY = """template <int SIDE>
__global__ void f(const float *A, const float *B, float *C, int n)
{ C[blockIdx.y * SIDE + threadIdx.y + blockIdx.x * SIDE + threadIdx.x] = A[0]; }
"""
FAULTY_LAUNCH = "void go(float *a, int n) { f<4><<<n / 4, dim3(4, 7)>>>(a, a, a, n); }\n"


@pytest.mark.parametrize(
    ("launch", "threads", "hint"),
    [("", "16×16", "; no launch of this kernel was found in the file"), (FAULTY_LAUNCH, "4×7", "")],
)
def test_a_launch_that_faults_is_not_called_a_kernel_that_cannot_be_built(
    launch: str, threads: str, hint: str, tmp_path: Path, matbench: Matbench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Even if it cannot be built with other template arguments."""
    path = saved(tmp_path / "faulty.cu", FAULTY + launch)

    def run(worker: Worker, *given: Any, case: Case, **more: Any) -> ProbeResult:
        is_first = case.params["SIDE"] in (4, 16)
        raise CaseError("running: illegal address") if is_first else BuildError("too many")

    monkeypatch.setattr(Worker, "run", run)
    said = matbench("adopt", path, code=1).stdout.strip()
    assert said == f"`f`, with {threads} threads: running: illegal address{hint}"


def watched(monkeypatch: pytest.MonkeyPatch, crashes: Callable[[Case], bool]) -> list[Case]:
    """All cases that are launched; those that crash."""
    cases: list[Case] = []

    def met(case: Case, _: int) -> CaseError | None:
        cases.append(case)
        return CaseError("running: illegal address") if crashes(case) else None

    disturb(monkeypatch, met, checks=False)
    return cases


def test_a_crash_is_not_repeated_and_ends_it(adopt: Adopt, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_other(case: Case) -> bool:
        return any(cases[0].params[name] != value for name, value in case.params.items())

    cases = watched(monkeypatch, is_other)
    _, table = adopt("sgemm-2d-tiles.cuh")
    assert len([case for case in cases if is_other(case)]) == 1
    assert table["entry"] == "sgemm2DTiles<64, 64, 8, 8, 8>"
    assert "sweep" not in table


def test_crashes_at_sizes_that_do_not_fit_end_no_other_step(
    adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the search for multiples along the next axis nor that for other constants."""
    watched(monkeypatch, lambda case: any(int(side) % 16 for side in case.problem.size.split("x")))
    _, table = adopt("sgemm-shared.cuh")
    assert table["launch"]["where"] == [f"{axis} % BLOCKSIZE == 0" for axis in "MNK"]
    assert table["tune"] == {"BLOCKSIZE": [8, 16, 32]}


WIDE = "#define WIDE(first) (((const float4 *)&(first))->x)\n"


@pytest.mark.parametrize(
    ("text", "one_more"),
    [
        ("rows-columns.cu", True),
        ("float4-cast.cu", False),
        (WIDE + plain(), True),
        (WIDE + changed(plain(), ("B[k * N + col]", "WIDE(B[k * N + col])")), False),
    ],
)
def test_one_more_than_a_multiple_comes_first_unless_lines_are_read_by_vectors(
    text: str, one_more: bool, adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = watched(monkeypatch, lambda _: False)
    adopt(text)
    sides = [case.problem.M for case in cases if len({*case.problem.size.split("x")}) == 3]
    other = next(side for side in sides if side != sides[0])
    assert (other == sides[0] + 1) == one_more


def test_what_is_built_next_is_built_ahead(adopt: Adopt, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[dict[str, int], tuple[str, ...]]] = []

    def start(_: Builders, device: DeviceInfo, cases: Sequence[Case], variants: Any) -> None:
        started.extend((case.params, variants) for case in cases)

    monkeypatch.setattr(Builders, "start", start)
    adopt("sgemm-shared.cuh")
    first, larger, smaller, *checked = started
    assert first == ({"BLOCKSIZE": 16}, ("plain",))
    assert larger == ({"BLOCKSIZE": 32}, ("plain",))
    assert smaller == ({"BLOCKSIZE": 8}, ("plain",))
    for params, some in ({}, checked[:3]), ({"BLOCKSIZE": 16}, checked[3:]):
        assert some == [(params, (one,)) for one in ("plain", "staggered", "reordered")]


def test_a_device_that_does_not_open_is_no_fault_of_the_kernel(
    tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "open", Mock(side_effect=CaseError("opening the device: lost")))
    told = matbench("adopt", copied("textbook.cu", tmp_path), code=1)
    assert told.output == "matbench: opening the device: lost\n"
    with Judge("33") as judge, pytest.raises(MatbenchError, match=r"^opening the device: lost$"):
        judge.run(tmp_path / "textbook.cu")


@pytest.mark.parametrize(("most", "told"), [(None, "all 8 sizes"), (0, "the only size")])
def test_a_kernel_of_large_tiles_is_checked_at_the_smallest_sizes_alone(
    most: int | None, told: str, adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_OPERATIONS", MOST_OPERATIONS if most is None else most)
    assert f"correct at {told} tried" in adopt("textbook.cu")[0]


def test_a_kernel_that_prints_is_checked_at_small_sizes(
    adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To print takes most of its time; here it never does."""
    checked: list[Problem] = []

    def measure(worker: Worker, case: Case) -> Outcome:
        checked.append(case.problem)
        return measured(worker, case)

    measured = Worker.measure
    monkeypatch.setattr(Worker, "measure", measure)
    monkeypatch.setattr(search, "_MOST_OPERATIONS", MOST_OPERATIONS)
    told, _ = adopt(changed(plain(), ("float sum", 'if (K > 1 << 20) printf("");\n float sum')))
    assert "prints on the device" in told
    assert max(one.M * one.N * one.K for one in checked) <= 32**3


def test_a_search_ends(tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_SEARCH_S", 0.0)
    path = copied("textbook.cu", tmp_path)
    said = matbench("adopt", path, code=1).stdout
    assert "none of the calls of `MatrixMulKernel` that were tried in 0 s" in said
    assert list(tmp_path.iterdir()) == [path]


LATE = LateError("running took longer than 3 s and was stopped (see --timeout)")
FULL = OutOfMemoryError("out of device memory")
CRASHED = CaseError("running: the worker process was killed from outside (SIGKILL)")
LOADED = ("float4-cast.cu", "rows-columns.cu", "sgemm-shared.cuh")


def disturb(
    monkeypatch: pytest.MonkeyPatch,
    disturbs: Callable[[Case, int], CaseError | None],
    *,
    checks: bool = True,
) -> list[CaseError]:
    """Launches and checks fail: `disturbs` gets the case and how often it was tried. The list of
    errors so far."""
    monkeypatch.setattr(trials, "_PAUSE_S", 0.0)
    tries: Counter[str] = Counter()
    errors: list[CaseError] = []

    def met(case: Case) -> CaseError | None:
        words = repr((case.label, case.problem, case.launch, case.kernel.args))
        error = disturbs(case, tries[words])
        tries[words] += 1
        errors.extend([error] if error else [])
        return error

    def run(worker: Worker, *given: Any, case: Case, **more: Any) -> ProbeResult:
        if error := met(case):
            raise error
        result: ProbeResult = asked(worker, *given, case=case, **more)
        return result

    def measure(worker: Worker, case: Case) -> Outcome:
        error = met(case)
        return worker.failed(case, error) if error else measured(worker, case)

    asked, measured = Worker.run, Worker.measure
    monkeypatch.setattr(Worker, "run", run)
    if checks:
        monkeypatch.setattr(Worker, "measure", measure)
    return errors


@pytest.mark.parametrize(
    "name", [LOADED[0], *(pytest.param(name, marks=pytest.mark.long) for name in LOADED[1:])]
)
@pytest.mark.parametrize(
    "error", [LATE, pytest.param(FULL, marks=pytest.mark.long), CRASHED],
    ids=["late", "full", "crashed"],
)  # fmt: skip
def test_a_table_does_not_depend_on_launches_and_checks_that_failed_once(
    error: CaseError, name: str, tmp_path: Path, matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(name, tmp_path)
    alone = matbench("adopt", path).stdout, path.with_suffix(".toml").read_bytes()
    errors = disturb(monkeypatch, lambda _, tried: None if tried % 2 else error)
    loaded = matbench("adopt", path, "--force").stdout
    assert (loaded, path.with_suffix(".toml").read_bytes()) == alone
    assert len(errors) > 5


def test_an_unending_launch_is_told(adopt: Adopt, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = disturb(monkeypatch, lambda case, _: FULL if 160 < case.problem.K < 320 else None)
    output, table = adopt("rows-columns.cu")
    assert errors
    said = "a launch did not complete, at 96x64x161: out of device memory; if the device was busy"
    assert f"warning: {said}, try again" in output
    assert table["launch"]["where"] == ["K % 160 == 0"]  # narrower than necessary


@pytest.mark.parametrize("times", [1, 2])
def test_a_case_that_could_not_be_checked_is_no_reason_for_a_claim(
    times: int, adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = Counter[str]()

    def measure(worker: Worker, case: Case) -> Outcome:
        checked[case.problem.size] += 1
        if len(checked) == 2 and checked[case.problem.size] <= times:
            return worker.failed(case, LATE)
        return measured(worker, case)

    measured = Worker.measure
    monkeypatch.setattr(Worker, "measure", measure)
    output, _ = adopt(plain().replace("sum", "tf32_sum"))
    assert "precision" not in output
    assert ("warning: a launch did not complete, at " in output) == (times == 2)


def test_formulas_fit_a_second_value_even_at_one_size(adopt: Adopt, matbench: Matbench) -> None:
    output, table = adopt(text_of("tuned.cu"))
    assert table["launch"]["block"] == ["block_size_x", "block_size_y"]
    path = re.findall("^next: matbench run (.*)", output, re.MULTILINE)[0]
    settings = ("--set", "tile_size_x=4", "--set", "tile_size_y=1", "--set", "block_size_y=8")
    matbench("run", path, "--sizes", "256", *settings, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


LARGE = plain(rows="16", columns="16").replace(
    "if (",
    "__shared__ double all[80][80]; all[threadIdx.x][threadIdx.y] = K; __syncthreads();\n    "
    "K = all[threadIdx.y][threadIdx.x] * all[K % 16][K % 16] / all[K % 80 / 5][7];\n    if (",
    1,
)


@pytest.mark.parametrize(
    ("text", "reason", "status"),
    [
        (plain(rows="64", columns="64"), "needs 4,096 threads per block", "skipped"),
        (LARGE, "mm needs 51,200 bytes of static shared memory per block", "failed"),
    ],
)  # fmt: skip
def test_what_no_gpu_can_launch_is_refused_on_a_cpu(
    text: str, reason: str, status: str, tmp_path: Path, matbench: Matbench, device: DeviceInfo
) -> None:
    if device.backend == "cuda":
        pytest.skip("the GPU refuses it in words of its own")
    path = saved(tmp_path / "large.cu", text)
    reason = (
        f"{reason}; no NVIDIA GPU allows more than {'1,024' if 'threads' in reason else '49,152'}"
    )
    assert reason in matbench("adopt", path, code=1).stdout
    side = 64 if status == "skipped" else 16
    grid = f'grid = ["ceil_div(N, {side})", "ceil_div(M, {side})"]'
    args = 'args = ["A", "B", "C", "M", "N", "K"]'
    path.with_suffix(".toml").write_text(f"{args}\n[launch]\nblock = [{side}, {side}]\n{grid}\n")
    matbench("run", path, "--sizes", "100", *QUICK, code=None)
    assert {outcome.status for outcome in last_run()} == {status}
    checked = matbench("check", path, code=None).output
    assert reason in " ".join(checked.split())


@pytest.mark.long
def test_95_of_100_generated_signatures_are_adopted(tmp_path: Path, matbench: Matbench) -> None:
    found = []
    for seed in range(200):
        path = saved(tmp_path / f"kernel-{seed}.cu", generated(seed))
        code = matbench("adopt", path, code=None).exit_code
        found.append(code == 0)
        assert path.with_suffix(".toml").exists() == found[-1]
        if found[-1]:  # then the call is also right at other sizes
            matbench("run", path, "--sizes", "67x131x97,96,160x64x224", "--allow-skips", *QUICK)
            assert {outcome.status for outcome in last_run()} <= {"measured", "skipped"}
    assert sum(found) >= 190


# One launch shows what a kernel computes, and what else it writes to


BODY = changed(
    GOOD_BODY, ("const float", "float"), ("K + k", "(K + PAD) + k"),
    ("* N +", "* (N + PAD) +"),
    ("= sum;", "= FACTOR * sum; if (row == 0 && column == 0) { EXTRA; }"),
)  # fmt: skip


def probed(
    session: Session,
    write_kernel: KernelWriter,
    extra: str,
    *,
    factor: str = "1",
    padding: int = 0,
    M: int = 20,
) -> ProbeResult:
    body = BODY.replace("EXTRA", extra).replace("FACTOR", factor).replace("PAD", str(padding))
    path = write_kernel("sighted", front=f"padding = {padding}", body=body)
    case = sweep.case(catalogue.load(path), Problem(M, 12, 9), {"TILE": 8}, session.backend.info)
    return probing.probed(session, case)


def test_what_else_is_written_to_is_said(
    session: Session, write_kernel: KernelWriter, table_regression: TableRegression
) -> None:
    def found(question: str) -> str:
        """Of a kernel that does this too, into memory with some elements after each row."""
        extra, padding = question.split("; ")
        return str(probed(session, write_kernel, extra, padding=int(padding)))

    table_regression("spoiled.txt", found)


def test_a_factor_and_old_C_are_recognised(session: Session, write_kernel: KernelWriter) -> None:
    factor = "C[row * N + column] - 2"  # times the sum
    found = probed(session, write_kernel, "", factor=factor)
    assert found.product == ProductForm("A", "B", -2.0, 1.0)
    assert found.share < 0.5
    assert not found.has_nan
    assert probed(session, write_kernel, "C[0] = sqrtf(-1.0f)").has_nan


@pytest.mark.parametrize("M", [20, 2100])
def test_a_product_is_right_in_rows_of_all_of_C(
    M: int, session: Session, write_kernel: KernelWriter
) -> None:
    assert probed(session, write_kernel, "", M=M).share == 1
    found = probed(session, write_kernel, "", factor="(row < M / 2 ? 1 : 2)", M=M)
    assert found.product is None
    assert 0.2 < found.share < 0.8


@pytest.mark.parametrize(("spoiled", "share"), [((), 1.0), (("its input A",), 1.0), ((), 0.9)])
def test_C_or_what_it_spoils_shows_a_wrong_call(spoiled: tuple[str, ...], share: float) -> None:
    shown: Any = Mock(faults=0, unfinished=[])
    shown.probe.return_value = ProbeResult(None, spoiled, share)
    assert AdoptTrials.is_wrong(shown, Mock(), Problem(2, 2, 2)) == (share < 1 or spoiled != ())
