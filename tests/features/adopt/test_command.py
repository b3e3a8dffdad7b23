"""`matbench adopt`: foreign files get a correct table, or none and a reason."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import toml
from support.cli import QUICK, Matbench, Refusal, last_run
from support.foreign import DYNAMIC, WHOLE, plain
from support.kernels import text_of
from support.paths import FOREIGN
from support.signatures import generated

from matbench.errors import BuildError, CaseError, OutOfMemoryError
from matbench.features.adopt import search, trials
from matbench.features.adopt.guess import Adopted
from matbench.features.adopt.probing import ProbeResult
from matbench.model import Case, DeviceInfo
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


def test_a_table_is_replaced_only_by_force(tmp_path: Path, matbench: Matbench) -> None:
    """Also beside a file that has the name of a built-in kernel."""
    path = copied("textbook.cu", tmp_path).rename(tmp_path / "tiled.cu")
    table = path.with_suffix(".toml")
    table.write_text("kept = true\n")
    assert "exists; use --force to replace it" in matbench("adopt", path, code=2).stderr
    assert table.read_text() == "kept = true\n"
    matbench("adopt", path, "--force")
    assert table_of(path)["args"] == ["A", "B", "C", "N"]
    assert str(path) in matbench("run", path, "--sizes", "16", *QUICK, "--format", "csv").stdout


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
    path = tmp_path / "main.cu"
    path.write_text('#include "textbook.cuh"\nint main() { return 0; }\n')
    assert "`MatrixMulKernel` computes A·B" in matbench("adopt", path).stdout
    assert not (tmp_path / "textbook.toml").exists()
    matbench("run", path, "--sizes", "48", *QUICK)
    assert [outcome.status for outcome in last_run()] == ["measured"]


@pytest.mark.parametrize(
    ("is_named", "place"),
    [(True, "main.cu"), pytest.param(False, "src/launch.cu", marks=pytest.mark.long)],
)
def test_launch_elsewhere(is_named: bool, place: str, tmp_path: Path, matbench: Matbench) -> None:
    text = (FOREIGN / "shared-attribute.cu").read_text(encoding="utf-8")
    kernel, launcher = text.split("void launch_gemm_staged")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "src").mkdir()
    path = tmp_path / "kernels" / "staged.cu"
    path.write_text(kernel)
    launcher = launcher if is_named else launcher.replace("gemm_staged", "other")
    (tmp_path / place).write_text(f"void launch_gemm_staged{launcher}")
    output = matbench("adopt", path, code=None).stdout
    assert ("blocks of 48, correct" in output) == is_named
    assert ("; no launch of this kernel was found" in output) != is_named
    if is_named:  # the search is the same, and long where it ends without a launch
        path.with_suffix(".toml").unlink()
        tiles = "where=M % 32 == 0, N % 48 == 0, K % 16 == 0"
        matbench("run", path, "--adopt", "--contract", tiles, "--sizes", "96", *QUICK)


def test_a_result_that_no_name_tells_is_the_one_that_is_written(adopt: Adopt) -> None:
    _, table = adopt(
        "__global__ void f(float *first, float *second, float *third, int m, int n, int k) {\n"
        "  int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 8 + threadIdx.x;\n"
        "  if (r >= m || c >= n) return;\n  float *to = second + r * n, sum = 0;\n"
        "  for (int i = 0; i < k; ++i) sum += first[r * k + i] * third[i * n + c];\n"
        "  to[c] = sum;\n}\n"
    )
    assert table["args"] == ["A", "C", "B", "M", "N", "K"]


def test_formulas_hold_at_other_values(adopt: Adopt, tmp_path: Path, matbench: Matbench) -> None:
    _, table = adopt("sgemm-2d-tiles.cuh")
    assert table["launch"]["block"] == ["BM * BN // (TM * TN)"]
    assert table["tune"]["BK"] == [4, 8, 16]
    assert table["launch"]["where"] == ["M % BM == 0", "N % BN == 0", "K % BK == 0"]
    other = ("--set", "BM=128", "--set", "BK=16", "--set", "TN=4")
    matbench("run", tmp_path / "sgemm-2d-tiles.cuh", "--sizes", "128x64x48", *other, *QUICK)
    assert {outcome.status for outcome in last_run()} == {"measured"}


def test_a_constant_without_a_formula_that_holds_is_fixed(adopt: Adopt) -> None:
    text = plain(f"SIDE == 16 && {WHOLE}", rows="SIDE", columns="SIDE")
    _, table = adopt(f"template <int SIDE>\n{text}")
    assert table["entry"] == "mm<16>"
    assert not {"sweep", "tune"} & table.keys()
    assert table["launch"]["grid"] == ["ceil_div(N, 16)", "ceil_div(M, 16)"]


@pytest.mark.parametrize(
    ("width", "check", "warning"),
    [
        ("K", WHOLE,
         "takes M, N and K, but is right only if M == N == K; is a leading dimension wrong?"),
        ("N", "col < N", "right only for multiples of 16 (M); is a bounds check missing?"),
    ],
)  # fmt: skip
def test_what_is_right_at_some_sizes_only_is_adopted_with_a_warning(
    width: str, check: str, warning: str, tmp_path: Path, adopt: Adopt
) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "width.h").write_text(f"#define WIDE {width}\n")
    text = '#include "width.h"\n' + plain(check, "WIDE")
    output, table = adopt(text, "--front-matter", "include_dirs=headers")
    assert re.findall("^warning: (.*)", output, re.MULTILINE) == [warning]
    assert table["include_dirs"] == ["headers"]


SQUARE = """void run(float *a, float *b, float *c)
{
    const int n = 512;
    mm<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n, n, n);
}
"""


@pytest.mark.parametrize("check", [WHOLE, f"{WHOLE} && M == N && N == K"])
def test_a_launch_of_squares_does_not_make_a_kernel_square(check: str, adopt: Adopt) -> None:
    _, table = adopt(plain(check).replace("int M, int N, int K", "int N, int M, int K") + SQUARE)
    assert ("M == N" in table["launch"].get("where", ())) == ("M == N" in check)
    assert table["launch"]["block"] == [16, 16]


@pytest.mark.long
def test_a_launch_of_squares_is_taken_if_nothing_else_is_right(adopt: Adopt) -> None:
    text = (FOREIGN / "swizzled.cu").read_text(encoding="utf-8")
    output, table = adopt(text.replace("col < N)", "col < N && M == N && N == K)"))
    assert "square sizes only" in output
    assert table["launch"]["where"] == ["M == N", "N == K"]


STAGED = text_of("staged.cu")


def staged(rounded: str = "+ T - 1", slot: str = "0", used: str = "0") -> str:
    return STAGED.replace("ROUNDED", rounded).replace("SLOT", slot).replace("USED", used)


@pytest.mark.parametrize(
    ("text", "said", "why"),
    [
        (staged(slot="t & 1", used="(k + T < K ? here : 1)"),
         "right for an even number of tiles of 16 (K): wrong where K % 32 is 1 to 16", ""),
        (staged("+ T - 2"), "wrong where K % 16 is 1", "it leaves out the last term of K"),
        (staged(""), "right only for multiples of 16 (K)", "it leaves out the last term of K"),
    ],
    ids=["even", "one less", "down"],
)  # fmt: skip
def test_a_restriction_that_no_bounds_check_would_lift_comes_with_its_period_and_reason(
    text: str, said: str, why: str, adopt: Adopt
) -> None:
    output, _ = adopt(text)
    [warning] = re.findall("^warning: (.*)", output, re.MULTILINE)
    assert warning.startswith(f"{said}; at ")
    assert warning.endswith(why)
    assert "bounds check" not in output


def test_a_bounds_check_is_asked_for_if_only_reads_go_beyond_an_edge(adopt: Adopt) -> None:
    output, _ = adopt(staged().replace(" && k + x < K", "").replace(" && k + y < K", ""))
    warning = "warning: right only for multiples of 16 (K); is a bounds check missing?"
    assert warning in output.splitlines()


def test_a_barrier_that_not_all_threads_reach_is_named(adopt: Adopt) -> None:
    leaving = "float sum = 0; if (row >= M || col >= N) return;"
    output, _ = adopt(staged().replace("float sum = 0;", leaving))
    [warning] = re.findall("^warning: (.*)", output, re.MULTILINE)
    assert warning.startswith("right only for multiples of 16 (M, N); at ")
    assert warning.endswith(
        "`__syncthreads()` at mine.cu:11 is missed by threads that leave under a condition "
        "(line 6) that not all threads of a block may meet"
    )


@pytest.mark.long
def test_an_endless_kernel_shows_compilers_warning(tmp_path: Path, matbench: Matbench) -> None:
    path = tmp_path / "down.cu"
    down = "unsigned k = K - 1; k >= 0; --k"
    path.write_text(plain().replace("int k = 0; k < K; ++k", down))
    output = matbench("adopt", path, code=1).output
    said = "result of comparison of unsigned expression >= 0 is always true"
    assert re.search(rf"was stopped; down\.cu:\d+: {said}", output)
    assert "if the device was busy" not in output


HEADER = """#ifdef SMALL
#define NJ 32
#define NK 32
#else
#define NJ 96
#define NK 96
#endif
#define REAL float
"""


def test_a_kernel_may_take_sizes_of_a_headers_strides(tmp_path: Path, adopt: Adopt) -> None:
    """Types are those of macros, which conditions of the header choose."""
    (tmp_path / "strides.h").write_text(HEADER)
    text = plain(width="NJ").replace("* K + k", "* NK + k").replace("float", "REAL")
    output, table = adopt(f'#include "strides.h"\n{text}')
    assert "computes A·B, at 96 only" in output
    assert table["args"] == ["A", "B", "C", "M", "N", "K"]
    assert table["launch"]["where"] == ["M == 96", "N == 96", "K == 96"]


def test_a_kernel_for_one_large_size_says_so(tmp_path: Path, matbench: Matbench) -> None:
    path = tmp_path / "large.cu"
    text = (FOREIGN / "fixed-sizes.cu").read_text(encoding="utf-8")
    path.write_text(text.replace("N_SIZE 160", "N_SIZE 4096"))
    output = matbench("adopt", path, code=1).stdout
    assert "is for 4,096 alone, but only sizes to 2,048 are tried" in output


def test_a_block_may_have_three_sides(adopt: Adopt) -> None:
    text = (FOREIGN / "textbook.cu").read_text(encoding="utf-8")
    _, table = adopt(text.replace("threadIdx.y", "(threadIdx.y + threadIdx.z)"))
    assert table["launch"]["block"][2:] == [1]


def test_atomics_elsewhere_than_in_C_need_no_claim(adopt: Adopt) -> None:
    counts = "__shared__ int threads; atomicAdd(&threads, 1);\n    if ("
    _, table = adopt(plain().replace("if (", counts, 1))
    assert "deterministic" not in table


def test_constants_may_be_in_another_header_of_the_main_file(tmp_path: Path, adopt: Adopt) -> None:
    (tmp_path / "one.h").write_text("const int ONE = 1;\n")
    launch = "void go() { mm<<<dim3(8, 8), dim3(16, 16)>>>(); }"
    (tmp_path / "main.cu").write_text(f'#include "one.h"\n#include "mine.cu"\n{launch}')
    _, table = adopt(plain(width="(N * ONE)"))
    assert table["sweep"] == {"ONE": [1]}


def test_constants_are_of_an_includer_or_usual_ones(tmp_path: Path, adopt: Adopt) -> None:
    _, table = adopt(plain(rows="block_size_y", columns="block_size_x"))
    assert table["sweep"] == {"block_size_x": [16], "block_size_y": [16]}
    assert table["launch"]["block"] == ["block_size_x", "block_size_y"]
    host = "void go(float *a, int n) { mm<<<n, n>>>(a, a, a, n, n, n); }\n"
    macros = "#define block_size_x 24\n#define block_size_y (block_size_x / 2)\n"
    (tmp_path / "main.cu").write_text(f'{macros}#include "mine.cu"\n{host}')
    _, table = adopt(plain(rows="block_size_y", columns="block_size_x"), "--force")
    assert table["sweep"] == {"block_size_x": [24], "block_size_y": [12]}


def test_headers_are_found_in_the_usual_folders(tmp_path: Path, matbench: Matbench) -> None:
    for folder in ("include", "src"):
        (tmp_path / folder).mkdir()
    (tmp_path / "include" / "width.h").write_text("#define WIDE N\n")
    path = tmp_path / "src" / "plain.cu"
    path.write_text('#include "width.h"\n' + plain(width="WIDE"))
    matbench("adopt", path)
    assert table_of(path)["include_dirs"] == ["../include"]


LAUNCH = """void multiply(float *a, float *b, float *c, int n)
{
    const int side = 8;
    mm<<<dim3(n / side, n / side), dim3(side, side), 2 * side * side * sizeof(float)>>>(a, b, c, n,
                                                                                     side);
}
"""


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
    path = tmp_path / "faulty.cu"
    path.write_text(FAULTY + launch)

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


@pytest.mark.parametrize(
    ("name", "one_more"), [("rows-columns.cu", True), ("float4-cast.cu", False)]
)
def test_one_more_than_a_multiple_comes_first_unless_lines_are_read_by_vectors(
    name: str, one_more: bool, adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = watched(monkeypatch, lambda _: False)
    adopt(name)
    sides = [case.problem.M for case in cases if len({*case.problem.size.split("x")}) == 3]
    other = next(side for side in sides if side != sides[0])
    assert (other == sides[0] + 1) == one_more


def test_what_is_built_next_is_built_ahead(adopt: Adopt, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[dict[str, int], tuple[str, ...]]] = []

    def start(_: Builders, device: DeviceInfo, cases: Sequence[Case], variants: Any) -> None:
        started.extend((case.params, variants) for case in cases)

    monkeypatch.setattr(Builders, "start", start)
    adopt("sgemm-shared.cuh")
    first, *checked = started
    assert first == ({"BLOCKSIZE": 32}, ("plain",))
    assert [variants for _, variants in checked] == [("plain",), ("staggered",), ("reordered",)]


ROUNDED = """__device__ float as_bf16(float x)
{
    const unsigned bits = __float_as_uint(x);
    return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
"""


def test_inputs_may_be_rounded_to_what_the_source_names(adopt: Adopt) -> None:
    text = re.sub(r"([AB]\[.*?\])", r"as_bf16(\1)", plain())
    output, table = adopt(ROUNDED + text)
    assert "precision = bfloat16, correct at" in output
    assert table["precision"] == "bfloat16"


@pytest.mark.parametrize(("most", "told"), [(None, "all 8 sizes"), (0, "the only size")])
def test_a_kernel_of_large_tiles_is_checked_at_the_smallest_sizes_alone(
    most: int | None, told: str, adopt: Adopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_OPERATIONS", MOST_OPERATIONS if most is None else most)
    assert f"correct at {told} tried" in adopt("textbook.cu")[0]


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


@pytest.mark.parametrize(("name", "launch", "side"), [("tileWidth", "", 16), ("w", LAUNCH, 8)])
def test_a_tile_may_be_sized_in_launch(name: str, launch: str, side: int, adopt: Adopt) -> None:
    text = re.sub(r"\b[MNK]\b", "n", DYNAMIC.replace("int M, int N, int K", "int n, int side"))
    text = re.sub(r"\bside\b", name, text.replace("side = blockDim.x, ", ""))
    _, table = adopt(text + launch)
    assert table["args"] == ["A", "B", "C", "N", str(side)]
    assert table["launch"]["shared_bytes"] == 8 * side * side


def test_given_keys_are_kept_and_the_rest_is_found(adopt: Adopt) -> None:
    args = "args=A,8*lda,B,ldb,C,8*ldc,M,N,K"
    given = (args, "name=mine", "launch.block=8,8", "launch.where=N % 2 == 0", "entry=pitched")
    words = [word for text in given for word in ("--front-matter", text)]
    _, table = adopt("pitched-double.cu", *words)
    launch = {"block": [8, 8], "grid": ["ceil_div(N, 8)", "ceil_div(M, 8)"]}
    assert table["args"] == args.removeprefix("args=").split(",")
    assert (table["name"], table["launch"]) == ("mine", {**launch, "where": ["N % 2 == 0"]})


def test_a_swept_constant_may_be_given(adopt: Adopt) -> None:
    _, table = adopt("sgemm-shared.cuh", "--front-matter", "sweep.BLOCKSIZE=16")
    assert table["sweep"] == {"BLOCKSIZE": [16]}


def test_a_new_file_that_is_there_is_adopted(tmp_path: Path, matbench: Matbench) -> None:
    path = copied("textbook.cu", tmp_path)
    assert "computes A·B" in matbench("new", path).stdout
    assert path.with_suffix(".toml").exists()


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("int main() {}\n", (), "no `__global__` function"),
        ("\0", (), "NUL byte"),
        (
            f"__global__ void d() {{ {'{' * 30000}{'}' * 30000} }}\n",
            (),
            "mine.cu:1: nested more than 1,000 levels deep",
        ),
        ("__global__ void f(float *a) {}\n", ("--entry", "g"), "not in mine.cu; it has: f"),
        *(
            ("__global__ void f(float *a, float *b, float *c) {}\n", ("--front-matter", key), said)
            for key, said in (
                ("args=A,B", "args: 2 given; `f` takes 3"),
                ("launch=x", "`launch`"),
                ("std=98", "std"),
                ("include_dirs=gone", "gone"),
            )
        ),
    ],
)
def test_bad_input_is_one_line(
    text: str, words: tuple[str, ...], message: str, refusal: Refusal
) -> None:
    Path("mine.cu").write_text(text)
    assert message in refusal("adopt", "mine.cu", *words)


@pytest.mark.long
def test_95_of_100_generated_signatures_are_adopted(tmp_path: Path, matbench: Matbench) -> None:
    found = []
    for seed in range(200):
        path = tmp_path / f"kernel-{seed}.cu"
        path.write_text(generated(seed).source)
        code = matbench("adopt", path, code=None).exit_code
        found.append(code == 0)
        assert path.with_suffix(".toml").exists() == found[-1]
        if found[-1]:  # then the call is also right at other sizes
            matbench("run", path, "--sizes", "67x131x97,96,160x64x224", "--allow-skips", *QUICK)
            assert {outcome.status for outcome in last_run()} <= {"measured", "skipped"}
    assert sum(found) >= 190
