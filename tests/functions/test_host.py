"""Functions on the host, as users run them on a CPU: measured, or refused with a reason."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import drivers, functions, toml
from support.cli import QUICK, Matbench, last_run
from support.golden import told_again
from support.kernels import changed, saved, text_of
from support.optional import present
from support.paths import FUNCTIONS, KERNELS

from matbench.backends.functions import libraries
from matbench.backends.functions.calls import ISOLATED
from matbench.backends.functions.libraries import Target
from matbench.cache import Cache
from matbench.errors import BuildError, UsageError
from matbench.features.adopt import functions as adopting
from matbench.kernelfile import catalogue, host_file
from matbench.model import Case, Kernel
from matbench.records.outcome import Outcome
from matbench.show.reasons import skip_reason
from matbench.worker.worker import Worker

FILE = FUNCTIONS / "host_on_cpu.cpp"
#: Its times are ignored.
measured = partial(functions.measured, max_time_s=0.02)


def load(entry: str, **given: Any) -> Kernel:
    table = {"entry": f"host {entry}", "requires": ["host"], "link": ["pthread"], **given}
    return catalogue.load(FILE, given=table)


PLAIN = text_of("sgemm.c")


#: The table of a kernel, and that of the function that launches it.
TWO = """entry = "product"
launch = { block = [8, 8], grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"] }
["host sgemm"]
args = ["B", "A", "C", "N", "M", "K"]
"""


@pytest.mark.parametrize("is_fenced", [True, False])
def test_one_file_has_a_table_for_its_kernel_and_one_for_its_launcher(
    is_fenced: bool, tmp_path: Path
) -> None:
    parameters = "(const float *A, const float *B, float *C, int M, int N, int K)"
    path = tmp_path / "mine.cu"
    fence = "".join(f"// {line}\n" for line in ["/// matbench", *TWO.splitlines(), "///"])
    code = f"__global__ void product{parameters} {{ }}\nvoid sgemm{parameters} {{ }}\n"
    path.write_text(fence * is_fenced + code)
    if not is_fenced:
        path.with_suffix(".toml").write_text(TWO)
    kernel = catalogue.load(path)
    assert (kernel.entry, kernel.launch.block) == ("product", (8, 8))
    host = catalogue.load(path, given={"entry": "host sgemm"})
    assert host.args == ("B", "A", "C", "N", "M", "K")


def test_a_kernels_table_says_nothing_about_its_launcher(tmp_path: Path) -> None:
    text = f"__global__ void product(const float *A, float *C, int N) {{ }}\n{PLAIN}"
    (tmp_path / "mine.toml").write_text(TWO.partition('["host')[0])
    file = saved(tmp_path / "mine.cu", text)
    assert catalogue.load(file, given={"entry": "host sgemm"}).args[:2] == ("M", "N")


def test_a_function_may_open_a_library_that_is_already_built(tmp_path: Path) -> None:
    page = Path(__file__).parents[2].joinpath("docs/host.md").read_text()
    text = page.split("```cpp\n")[-1].split("```")[0]
    assert text.startswith("// gemm.cpp\n")
    assert "/opt/lib" in text
    file = saved(tmp_path / "gemm.cpp", text.replace("/opt/lib", str(tmp_path)))
    statuses = []
    for terms in ("K", "K - 1"):
        drivers.shared_library(tmp_path / "libgemm.so", PLAIN.replace("k < K", f"k < {terms}"))
        statuses.append(measured(catalogue.load(file, given={"entry": "host gemm"}), "64").status)
    assert statuses == ["measured", "wrong"]


def test_a_process_that_has_loaded_a_function_stores_nothing(tmp_path: Path) -> None:
    file, cache = tmp_path / "mine.c", Cache(tmp_path / "cache")
    file.write_text(PLAIN)
    kernel = catalogue.load(file, given={"entry": "host sgemm"})
    memory: Any = SimpleNamespace(cache=cache)
    cache.put("before", b"1")
    libraries.HostFunction(kernel, {}, libraries.host_target(), memory, lambda: 0, {})
    cache.put("after", b"1")
    assert cache.get("before") is not None
    assert cache.get("after") is None
    with pytest.raises(BuildError, match=r"/mine\.c: cannot be loaded: file too short$"):
        libraries.loaded(kernel, b"")


SCRATCH = text_of("static-scratch.cpp")


def test_two_versions_of_a_file_do_not_share_statics(matbench: Matbench, tmp_path: Path) -> None:
    for count in (1000, 60_000_000):
        (tmp_path / str(count)).mkdir()
        file = saved(tmp_path / str(count) / "mine.cpp", SCRATCH.replace("COUNT", str(count)))
        file.with_suffix(".toml").write_text('entry = "host mine"\nrequires = ["host"]\n')
    SHORT = ("--max-time", "0.02")
    sides = [tmp_path / str(count) / "mine.cpp" for count in (1000, 60_000_000)]
    said = matbench(
        "compare", *sides, "--sizes", "64", "--backend", "opencl", *SHORT, code=None
    ).output
    assert "without a verdict" not in said


def test_each_function_has_its_verdict(
    tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    """Templates, defaults, factors, workspaces, and what a build or a call fails for."""
    saved(tmp_path / "own.h", "#include <cublas_v2.h>\n")

    def verdict(source: str) -> str:
        given = toml.read(source)
        file, factors = KERNELS / given.pop("file"), given.pop("factors", {})
        path = tmp_path / given.pop("name", file.name)
        saved(path, given.pop("above", "") + file.read_text(encoding="utf-8"))
        try:
            outcome = measured(catalogue.load(path, given=given), "33x47x16", factors=factors)
        except UsageError as error:
            return str(error).replace(str(tmp_path), "")
        reason = skip_reason(outcome.skip) if outcome.skip else outcome.reason
        return f"{outcome.status}: {reason}" if reason else outcome.status

    told_again(Path(__file__).with_name("hosts.txt"), verdict, file_regression)


def test_a_mistake_in_a_table_is_one_line(file_regression: FileRegressionFixture) -> None:
    def refusal(source: str) -> str:
        given = {"entry": "host honest", "requires": ["host"]} | toml.read(source)
        with pytest.raises(UsageError) as error:
            catalogue.load(FILE, given=given)
        [said] = str(error.value).splitlines()
        return said.replace(str(FILE.parent), "")

    told_again(Path(__file__).with_name("tables.txt"), refusal, file_regression)


@pytest.mark.parametrize("above", ["", "#include <no_such.h>\n"])
def test_a_compiler_s_error_names_the_line_of_the_file(above: str, tmp_path: Path) -> None:
    function = "void f(float *A, float *B, float *C, int M, int N, int K) {\n  no such;\n}\n"
    file = saved(tmp_path / "mine.cpp", above + function)
    outcome = measured(catalogue.load(file, given={"entry": "host f", "requires": ["host"]}), "64")
    assert outcome.status == "failed"
    assert f"mine.cpp:{1 if above else 2}:" in present(outcome.reason)


# -- as their authors build and call them ----------------------------------------------------------

#: With a race on `j`, unless it is private.
PARALLEL = text_of("parallel.cpp")


@pytest.mark.parametrize("private", ["", "private(j)"])
def test_openmp_is_built_and_races_wrong(private: str, matbench: Matbench, tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    text = PARALLEL.replace("PRIVATE", f"num_threads(4) {private}")  # in turns, also on one core
    file.write_text("#include <sched.h>\n" + text.replace("= sum;", "= sum; sched_yield();"))
    fixed = ("--sizes", "130x97x101", "--backend", "opencl", *QUICK)
    said = matbench("run", file, "--entry", "host f", *fixed, code=None).output
    [outcome] = last_run()
    assert "built with -fopenmp" in said
    if private:
        assert (outcome.status, outcome.reason) == ("measured", None)
    else:
        # The shared index may also go beyond the edge of C.
        assert (outcome.status, outcome.median_ns) == ("wrong", None)


def test_a_function_without_openmp_has_one_build(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    text = PARALLEL.replace("#pragma omp", "// #pragma omp")
    file.write_text(f"#ifndef __OPTIMIZE__\n#error twice\n#endif\n{text}")
    outcome = measured(catalogue.load(file, given={"entry": "host f"}), "64")
    assert (outcome.status, outcome.notes[:-1]) == ("measured", (ISOLATED,))


#: Its helper may be called only with an option that allows vectors.
VECTORS = text_of("vectors.cpp")


def test_compiler_options_are_those_of_the_author(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "mine.cpp", VECTORS)
    fixed = ("--entry", "host f", "--sizes", "64", "--backend", "opencl", *QUICK)
    matbench("run", file, *fixed, "--front-matter", "options=-DWIDTH=8", code=1)
    assert "target specific option" in present(last_run()[0].reason)
    options = ("--front-matter", "options=-DWIDTH=8,-march=native")
    assert "built with -DWIDTH=8 -march=native" in matbench("run", file, *fixed, *options).output
    file.with_suffix(".toml").write_text('options = ["-mavx", "-DWIDTH=8"]\n')
    assert "built with -mavx -DWIDTH=8" in matbench("run", file, *fixed).output


def test_nvcc_passes_on_what_is_for_the_host() -> None:
    options = ["-march=native", "-fopenmp", "-DX=1", "--use_fast_math", "-O2", "-Ofast"]
    usual = Target("nvcc", "13.0", "90").options([])
    built = Target("nvcc", "13.0", "90").options(options)
    assert [option for option in built if option not in usual] == [
        "-Xcompiler=-march=native", "-Xcompiler=-fopenmp", "-DX=1", "--use_fast_math",
        "-Xcompiler=-Ofast", "-O2",
    ]  # fmt: skip
    assert "-O3" not in built
    assert {*usual} - {*Target("nvcc", "12.9", "90").options([])} == {"--split-compile=0"}


def test_a_library_is_linked_if_its_header_is_included(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cblas.h").write_text('extern "C" void product(float, int);\n')
    text = PARALLEL.replace("sum;", "sum; product(sum, n);").replace("#pragma omp", "//")
    (tmp_path / "mine.cpp").write_text(f"#include <cblas.h>\n{text}")
    fixed = ("--entry", "host f", "--sizes", "64", "--backend", "opencl", *QUICK)
    matbench("run", tmp_path / "mine.cpp", *fixed, code=1)
    reason = present(last_run()[0].reason)
    assert "undefined symbol: product; install the library that has it, or name that" in reason
    drivers.shared_library(tmp_path / "libcblas.so", "void product(float x, int n) {}")
    monkeypatch.setenv("LIBRARY_PATH", str(tmp_path))
    matbench("run", tmp_path / "mine.cpp", *fixed)
    assert last_run()[0].status == "measured"


@pytest.mark.parametrize(
    ("source", "given", "names"),
    [
        ("#include <cublas_v2.h>", (), [("cublas",)]),
        ("#include <cublas_v2.h>\n#include <cublasLt.h>", ("cublas",), [("cublasLt",)]),
        ("#include <openblas/cblas.h>", ("blis",), []),
        ("// #include <cublas_v2.h>", (), []),
    ],
)
def test_linked_headers(source: str, given: tuple[str, ...], names: list[tuple[str, ...]]) -> None:
    kernel = msgspec.structs.replace(load("honest"), source=source, link=given)
    assert host_file.libraries(kernel) == names


def test_names_in_another_order_need_no_table(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(
        tmp_path / "mine.cpp",
        PARALLEL.replace("#pragma", "//").replace("int n, int k", "int k, long N"),
    )
    file.write_text(file.read_text().replace("j < n", "j < N").replace("* n +", "* N +"))
    matbench("run", file, "--entry", "host f", "--sizes", "40x30x50", "--backend", "opencl", *QUICK)
    assert last_run()[0].status == "measured"
    file.write_text(file.read_text().replace("int m,", "int rows,").replace("< m", "< rows"))
    said = matbench("run", file, "--entry", "host f", "--sizes", "40", code=2).output
    assert "front matter is missing (args)" in said


@pytest.mark.usefixtures("few_probes")
def test_a_function_that_adds_to_C_is_adopted_with_beta(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "mine.c", text_of("adds.c"))
    said = matbench("adopt", file, "--entry", "host adds").output
    assert "`adds` on the host computes A·B + C when called with N, A, B, C" in said
    assert "beta = 1.0" in file.with_suffix(".toml").read_text()
    # Its sums begin with C, so that C is rounded with each term.
    matbench("run", file, "--sizes", "64,96", "--backend", "opencl")
    assert [outcome.status for outcome in last_run()] == ["measured"] * 2


@pytest.mark.usefixtures("few_probes")
@pytest.mark.parametrize("is_plain", [False, True])
def test_one_call_shows_which_form_is_right(
    is_plain: bool, matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a function that keeps its matrices until it is called with another size."""
    checked: list[Outcome] = []

    def measure(worker: Worker, case: Case) -> Outcome:
        checked.append(unwatched(worker, case))
        return checked[-1]

    unwatched = Worker.measure
    monkeypatch.setattr(Worker, "measure", measure)
    text = text_of("keeps.cpp")
    if is_plain:
        text = changed(text, ("kept_B[j * K + k]", "kept_B[k * N + j]"), ("j * M + i", "i * N + j"))
    file = saved(tmp_path / "mine.cpp", text)
    said = matbench("adopt", file, "--entry", "host keeps").output
    form = "A·B" if is_plain else "Aᵀ·B"
    assert f"computes {form} when called with M, N, K, A, B, C, null; right at all" in said
    assert ("column-major" in file.with_suffix(".toml").read_text()) != is_plain
    assert {outcome.status for outcome in checked} == {"measured"}


def test_a_library_is_built_again_if_its_header_changes(tmp_path: Path) -> None:
    header, file = tmp_path / "terms.h", tmp_path / "mine.cpp"
    file.write_text(text_of("with-terms.cpp"))
    statuses = []
    for terms in ("K", "K - 1"):
        header.write_text(f"#define TERMS ({terms})\n")
        kernel = catalogue.load(file, given={"entry": "host f", "requires": ["host"]})
        statuses.append(measured(kernel, "64").status)
    assert statuses == ["measured", "wrong"]


ADOPTED = text_of("adopted.cpp")


@pytest.mark.usefixtures("few_probes")
def test_adopt_finds_arguments_of_functions_on_the_host(matbench: Matbench, tmp_path: Path) -> None:
    file = saved(tmp_path / "mine.cpp", ADOPTED)
    said = matbench("adopt", file).output
    assert "`gemm_nt` on the host computes A·Bᵀ when called with C, A, B, M, N, K, alpha" in said
    assert 'transpose = "NT"' in file.with_suffix(".toml").read_text()
    matbench("run", file, "--sizes", "64", "--alpha", "2", "--backend", "opencl")
    assert last_run()[0].status == "measured"
    refused = matbench("adopt", file, "--entry", "host nothing", "--force", code=2).output
    assert "--entry 'host nothing': not in " in refused


@pytest.mark.usefixtures("few_probes")
def test_a_function_that_computes_whole_tiles_alone_is_tried_at_larger_sizes(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = saved(tmp_path / "mine.cpp", text_of("tiles.cpp"))
    (tmp_path / "Makefile").write_text("mine.so:\n\tg++ -shared -DTILE=64 mine.cpp\n")
    assert "right at all sizes tried, with M % 64 == 0 and" in matbench("adopt", file).output
    endless = "for (volatile int at = M; at % 64;) {}\n  for (int i0 = 0;"
    file.write_text(changed(file.read_text(), ("for (int i0 = 0;", endless)))
    monkeypatch.setattr(adopting, "_ON_HOST", (60.0, 15.0))
    began_s = time.monotonic()
    said = matbench("adopt", file, "--force").output
    assert "right at all sizes tried, with M % 64 == 0 and" in said
    assert time.monotonic() < began_s + 30, "one call that does not end is enough"
    file.write_text(text_of("tiles.cpp"))
    said = matbench("adopt", file, "--force", "--set", "TILE=1").output
    assert "right at all sizes tried\n" in said
    assert 'options = ["-DTILE=1"]' in file.with_suffix(".toml").read_text()
    monkeypatch.setattr(adopting, "_ON_HOST", (5.0, 0.0))
    said = matbench("adopt", file, "--force", "--set", "TILE=50", code=1).output
    assert "never written" in said
    assert "not all calls were tried" in said
