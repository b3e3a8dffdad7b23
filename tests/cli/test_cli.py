"""The commands: what they refuse, what they run, print and keep, and how they end."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import KernelWriter, Matbench, kernel_text
from support.paths import ROOT

from matbench import __version__, backends, cli, workloads
from matbench.kernelfile import catalogue
from matbench.measure import worker
from matbench.model import DeviceInfo
from matbench.records import results
from matbench.records.outcome import Outcome
from matbench.show import report

#: As little sampling as there can be: these tests look at everything but the times.
QUICK = ("--max-time", "0.001", "--no-blocks")

#: A kernel with a signature of its own, as BLAS has it.
SGEMM = """
extern "C" __global__ void sgemm(int m, int n, int k, float alpha, const float *A, const float *B,
                                 float beta, float *C)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i)
            sum += A[(size_t)row * k + i] * B[(size_t)i * n + column];
        const size_t at = (size_t)row * n + column;
        C[at] = beta == 0.0f ? alpha * sum : alpha * sum + beta * C[at];
    }
}
"""
FOREIGN = """entry = "sgemm"
args = ["M", "N", "K", "1.0", "A", "B", "0.0", "C"]"""

SLOW = """
extern "C" __global__ void ENTRY(const float *A, const float *B, float *C, int M, int N, int K)
{
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= N)
        return;
    volatile float sum = 0.0f;
    for (int turn = 0; turn < 20; ++turn) {
        sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum = sum + A[(size_t)row * K + k] * B[(size_t)k * N + column];
    }
    C[(size_t)row * N + column] = sum;
}
"""


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last run of each test's own, and an empty folder to work in."""
    monkeypatch.setenv("MATBENCH_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def last_run() -> list[Outcome]:
    return results.read(results.last_run_path())[1]


def summary(outcomes: list[Outcome]) -> list[tuple[str, int | None, str, str]]:
    return [
        (o.case.kernel, o.case.params.get("TILE"), o.case.problem.size, o.status) for o in outcomes
    ]


# -- help ----------------------------------------------------------------------------------------


def command_paths(command: click.Command = cli.main, *path: str) -> list[tuple[str, ...]]:
    found = [path]
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            found += command_paths(child, *path, name)
    return found


@pytest.mark.parametrize("path", command_paths(), ids=" ".join)
def test_every_command_and_option_has_help(path: tuple[str, ...], matbench: Matbench) -> None:
    text = matbench(*path, "--help").stdout
    assert text == matbench(*path, "-h").stdout
    assert text.startswith(f"Usage: {' '.join(('matbench', *path))} ")
    command: click.Command = cli.main
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.opts[0] in text


def test_the_page_of_commands_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "docs" / "generate_commands.py"
    spec = importlib.util.spec_from_file_location("generate_commands", path)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert generator.is_fresh(page), "run python docs/generate_commands.py"
    assert not generator.is_fresh(page.replace("--sizes", "--size"))
    for path_of_command in command_paths():
        assert f"\n## {' '.join(('matbench', *path_of_command))}\n" in page


def test_the_version(matbench: Matbench) -> None:
    assert matbench("--version").stdout == f"matbench, version {__version__}\n"


# -- bad input -----------------------------------------------------------------------------------


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_case(*_: Any) -> None:
        raise AssertionError("a case was run")

    for method in ("run", "compare", "profile"):
        monkeypatch.setattr(worker.Worker, method, no_case)


def refusal(matbench: Matbench, *arguments: str | Path) -> str:
    """The one line that a refused command prints."""
    Path("kept.jsonl").write_bytes(b"kept as it is")
    results.last_run_path().parent.mkdir(exist_ok=True)
    results.last_run_path().write_bytes(b"kept as well")
    before = {path.name for path in Path().iterdir()}
    result = matbench(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("matbench")
    assert Path("kept.jsonl").read_bytes() == b"kept as it is"
    assert results.last_run_path().read_bytes() == b"kept as well"
    assert {path.name for path in Path().iterdir()} == before
    return result.stderr.rstrip("\n").split(": ", 1)[1]


#: Arguments of `run`, and what its one line must say.
BAD_RUNS: dict[str, tuple[list[str], str]] = {
    "unknown kernel": (["tild"], "no kernel 'tild'; did you mean 'tiled'?"),
    "unlike any kernel": (["xyzzy"], "no kernel 'xyzzy'; see `matbench list`"),
    "second unknown": (["tiled", "kahn"], "no kernel 'kahn'; did you mean 'kahan'?"),
    "size 0": (["--sizes", "256,0"], "size '0': a matrix has at least one row and column"),
    "negative size": (["--sizes=-8"], "size '-8': a matrix has at least one row"),
    "huge size": (["--sizes", "99999999999"], "size '99999999999': at most 1,073,741,824 a side"),
    "size no number": (["--sizes", "big"], "size 'big': write 1000 or MxNxK, as in 512x1024x768"),
    "malformed size": (["--sizes", "256x"], "size '256x': write 1000 or MxNxK"),
    "two sides": (["--sizes", "256x256"], "size '256x256': write 1000 or MxNxK"),
    "no size": (["--sizes", ""], "size '': write 1000 or MxNxK"),
    "tile 0": (["--tiles", "8,0"], "--tiles '0': a whole number above 0, as in 8,16,32"),
    "negative tile": (["--tiles=-8"], "--tiles '-8': a whole number above 0"),
    "tile no number": (["--tiles", "eight"], "--tiles 'eight': a whole number above 0"),
    "tile of a fraction": (["--tiles", "8.5"], "--tiles '8.5': a whole number above 0"),
    "unknown set": (
        ["--set", "THREDS=8"],
        "--set 'THREDS': no chosen kernel sweeps it; did you mean",
    ),
    "set of nothing": (["--set", "THREADS"], "--set 'THREADS': write NAME=VALUE"),
    "set to no number": (["--set", "THREADS=all"], "--set THREADS 'all': a whole number above 0"),
    "unknown device": (["--device", "99"], "--device '99': no such device; there are: "),
    "unknown device name": (["--device", "abacus"], "--device 'abacus': no such device; there are"),
    "unknown backend": (["--backend", "metal"], "'metal' is not one of 'auto', 'cuda', 'opencl'"),
    "unknown group": (["--group", "all-of-them"], "'all-of-them' is not one of 'tutorial'"),
    "unknown inputs": (["--inputs", "ones"], "'ones' is not one of 'uniform', 'signed', 'normal'"),
    "unknown format": (["--format", "word"], "'word' is none of rich, csv, json, "),
    "seed no number": (["--seed", "x"], "Invalid value for '--seed': 'x' is not a valid integer"),
    "seed negative": (["--seed=-1"], "Invalid value for '--seed': -1 is not in the range"),
    "no time": (["--timeout", "0"], "Invalid value for '--timeout': 0.0 is not in the range"),
    "time no number": (["--timeout", "nan"], "Invalid value for '--timeout': 'nan' is no number"),
    "build time": (["--build-timeout", "-1"], "Invalid value for '--build-timeout'"),
    "max time": (["--max-time", "inf"], "Invalid value for '--max-time'"),
    "precision": (["--precision", "fine"], "'fine': write a share such as 5% or 0.05"),
    "graph without hot": (["--graph"], "--graph launches hot samples; add --hot"),
    "unknown option": (["--szies", "8"], "No such option '--szies'."),
    "option without value": (["--sizes"], "Option '--sizes' requires an argument."),
    "no such file": (["--kernel", "none.cu"], "none.cu: cannot be read: No such file or directory"),
    "kernel is a folder": (["--kernel", "."], ".: cannot be read: Is a directory"),
    "no such folder": (["--kernels-dir", "none"], "none: no such folder of kernels"),
    "empty folder": (["--kernels-dir", "."], ".: no *.cu file in it"),
    "append and force": (
        ["--append", "--force"],
        "--append, --force and --resume exclude each other",
    ),
    "resume and output": (["--resume", "kept.jsonl"], "leave --output away"),
}


@pytest.mark.usefixtures("nothing_runs", "device")
@pytest.mark.parametrize(("arguments", "told"), BAD_RUNS.values(), ids=BAD_RUNS)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], told: str, matbench: Matbench
) -> None:
    how = [] if "--append" in arguments or "--resume" in arguments else ["--force"]
    assert told in refusal(matbench, "run", "--output", "kept.jsonl", *how, *arguments)


#: A mistake in a kernel file: what replaces what, and the line and the words that tell it.
BAD_FILES: dict[str, tuple[str, str, int, str]] = {
    "not TOML": ('"For a test"', '"For a test', 3, "not TOML"),
    "unknown key": ("summary =", "sumary =", 3, "unknown key `sumary`; did you mean `summary`?"),
    "unknown name": (
        '["TILE", "TILE"]',
        '["TIEL"]',
        8,
        "'TIEL' is not known here; known: K, M, N,",
    ),
    "not arithmetic": (
        '["TILE", "TILE"]',
        '["open(1)"]',
        8,
        "only ceil_div, is_power_of_two, max, min can be called",
    ),
    "without bound": (
        '["TILE", "TILE"]',
        '["9**9**9"]',
        8,
        "a power is limited to exponents 0 to 64",
    ),
    "no entry": ("void mine(", "void yours(", 2, "no entry `__global__ void mine(…)`"),
    "wrong type": ("TILE = [8]", "TILE = 8", 6, "`sweep.TILE`: Expected `array`, got `int`"),
    "not closed": (
        "\n// ///\n",
        "\n",
        1,
        "front matter is not closed; end it with a line `// ///`",
    ),
}


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(("old", "new", "line", "told"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_kernel_file_is_told_with_its_line(
    old: str, new: str, line: int, told: str, matbench: Matbench
) -> None:
    text = kernel_text()
    assert text.count(old) == 1
    Path("mine.cu").write_text(text.replace(old, new), encoding="utf-8")
    for command in (["run", "--output", "kept.jsonl", "--force"], ["list"], ["show", "tiled"]):
        message = refusal(matbench, *command, "--kernel", "mine.cu")
        assert message.startswith(f"mine.cu:{line}: ")
        assert told in message


@pytest.mark.usefixtures("nothing_runs", "device")
def test_an_output_that_cannot_be_written_is_refused(matbench: Matbench) -> None:
    message = refusal(matbench, "run", "tiled", "--output", "none/x.jsonl")
    assert message.startswith("none/x.jsonl: no folder ")
    assert message.endswith("make it, or name another file")
    assert refusal(matbench, "run", "tiled", "--output", ".") == ".: is a folder; name a file in it"
    message = refusal(matbench, "run", "tiled", "--output", "/sys/matbench.jsonl")
    assert message.startswith("/sys/matbench.jsonl: cannot be written: ")
    assert message.endswith("; name another file")


@pytest.mark.usefixtures("nothing_runs", "device")
def test_an_output_that_exists_is_kept(matbench: Matbench) -> None:
    assert refusal(matbench, "run", "tiled", "--output", "kept.jsonl") == (
        "kept.jsonl: exists; add to it with --append, replace it with --force, "
        "or go on with it by --resume"
    )
    for how in (["--append", "--output", "kept.jsonl"], ["--resume", "kept.jsonl"]):
        assert refusal(matbench, "run", "tiled", *how).startswith("kept.jsonl:1: not a record")


@pytest.mark.usefixtures("nothing_runs")
def test_a_backend_without_a_device_says_what_is_missing(matbench: Matbench) -> None:
    try:
        backends.devices("cuda")
    except backends.UnavailableError:
        pass
    else:
        pytest.skip("CUDA can be used here")
    message = refusal(matbench, "run", "tiled", "--backend", "cuda", "--output", "kept.jsonl")
    assert message.startswith("no device to run on; cuda: ")
    assert re.search("install|driver", message)


@pytest.mark.usefixtures("nothing_runs")
def test_two_kernels_of_one_name_are_refused(matbench: Matbench) -> None:
    for name in ("one.cu", "two.cu"):
        Path(name).write_text(kernel_text(), encoding="utf-8")
    message = refusal(matbench, "run", "--kernel", "one.cu", "--kernel", "two.cu")
    assert message == "two.cu: the name 'mine' is taken by one.cu; choose another `name`"
    Path("three.cu").write_text(kernel_text("tiled"), encoding="utf-8")
    message = refusal(matbench, "run", "--kernel", "three.cu")
    assert message == (
        "three.cu: the name 'tiled' is taken by kernels/tiled.cu; choose another `name`"
    )


#: Other commands, and what their one line must say.
BAD_COMMANDS: dict[str, tuple[list[str], str]] = {
    "command": (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
    "cache command": (["cache", "clean"], "No such command 'clean'."),
    "show nothing": (["show"], "Missing argument 'NAME'."),
    "show unknown": (["show", "tild"], "no kernel 'tild'; did you mean 'tiled'?"),
    "list format": (["list", "--format", "csv"], "'csv' is not one of"),
    "compare one": (["compare", "tiled"], "compare takes two kernels"),
    "compare unknown": (["compare", "tiled", "tild"], "no kernel 'tild'; did you mean 'tiled'?"),
    "compare sizes": (["compare", "tiled", "kahan", "--sizes", "0"], "size '0'"),
    "compare tiles": (["compare", "tiled", "kahan", "--tiles", "x"], "--tiles 'x'"),
    "compare share": (
        ["compare", "tiled", "kahan", "--fail-if-slower", "lot"],
        "'lot': write a share",
    ),
    "compare threshold": (
        ["compare", "tiled", "kahan", "--threshold", "nan"],
        "'nan': write a share",
    ),
    "compare both": (
        ["compare", "tiled", "kahan", "--hot", "--cold", "--backend", "opencl"],
        "--cold or --hot: one kind of launches",
    ),
    "compare graph alone": (
        ["compare", "tiled", "kahan", "--graph", "--backend", "opencl"],
        "--graph launches hot samples; add --hot",
    ),
    "compare graph": (
        ["compare", "tiled", "kahan", "--hot", "--graph", "--backend", "opencl"],
        "--graph needs CUDA; this is opencl",
    ),
    "compare numpy": (["compare", "tiled", "numpy"], "numpy runs on the host alone"),
    "report nothing": (["report"], "Missing argument 'FILE...'."),
    "report none": (
        ["report", "none.jsonl"],
        "none.jsonl: cannot be read: No such file or directory",
    ),
    "report no record": (["report", "kept.jsonl"], "kept.jsonl:1: not a record"),
    "report format": (["report", "kept.jsonl", "--format", "x"], "'x' is none of rich, csv, json"),
    "check none": (["check", "none.cu"], "none.cu: cannot be read: No such file or directory"),
    "check unknown": (["check", "tild"], "no kernel 'tild'; did you mean 'tiled'?"),
}


@pytest.mark.usefixtures("nothing_runs", "device")
@pytest.mark.parametrize(("arguments", "told"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_other_commands_refuse_as_clearly(
    arguments: list[str], told: str, matbench: Matbench
) -> None:
    assert told in refusal(matbench, *arguments)


def test_a_cache_that_others_can_fill_stops_the_run(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: DeviceInfo
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    result = matbench("run", "tiled", "--sizes", "8", "--output", "out.jsonl", code=2)
    assert result.stderr == (
        f"matbench: cache folder {folder}: others can write to it; "
        "`chmod 700` it or choose another with MATBENCH_CACHE_DIR\n"
    )
    assert not Path("out.jsonl").exists()


# -- one sweep of everything ---------------------------------------------------------------------

SIZES = ("20", "33x20x40")


@pytest.fixture(scope="module")
def sweep(
    tmp_path_factory: pytest.TempPathFactory, matbench: Matbench, device: DeviceInfo
) -> tuple[Any, Path]:
    """Good and bad kernels side by side, and the file that their outcomes were written to."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "kernels").mkdir()
    grid = """block = [8, 8]
grid = ["ceil_div(N, 8)", "ceil_div(M, 8)"]"""
    once = kernel_text("once").replace("TILE = [8]\n// ", "").replace("// [sweep]\n", "")
    files = {
        "good": kernel_text("good"),
        "once": once.replace("TILE", "8").replace('"8"', "8"),
        "foreign": kernel_text("foreign", front=FOREIGN, launch=grid, body=SGEMM),
        "slow": kernel_text("slow", body=SLOW),
        "liar": kernel_text("liar").replace("k < K", "k < K - 1"),
        "typo": kernel_text("typo").replace("sum +=", "summ +="),
        "cuda-only": kernel_text("cuda-only", front='requires = ["sm_999"]'),
    }
    for name, text in files.items():
        (folder / "kernels" / f"{name}.cu").write_text(text, encoding="utf-8")
    output = folder / "sweep.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATBENCH_STATE_DIR", str(folder / "state"))
        result = matbench(
            "run", "--kernels-dir", folder / "kernels", "--sizes", ",".join(SIZES),
            "--tiles", "8,128", "--output", output, "--format", "json", "--seed", "5",
            "--max-time", "0.02", code=1,
        )  # fmt: skip
        assert results.read(results.last_run_path()) == results.read(output)
    return result, output


def test_each_kernel_met_its_fate(sweep: tuple[Any, Path]) -> None:
    _, outcomes = results.read(sweep[1])
    found = {(o.case.kernel, o.case.params.get("TILE"), o.case.problem.size): o for o in outcomes}
    assert len(found) == len(outcomes)
    sizes = {"20", "33x20x40"}
    assert found.keys() == {
        *((kernel, tile, size) for tile in (8, 128) for size in sizes
          for kernel in ("good", "slow", "liar", "typo", "cuda-only", "foreign")),
        *(("once", None, size) for size in sizes),
    }  # fmt: skip
    for (kernel, tile, _), outcome in found.items():
        if kernel == "cuda-only":
            assert outcome.status == "skipped"
            assert outcome.reason is not None
            assert outcome.reason.startswith("needs sm_999; this ")
        elif tile == 128 and kernel != "foreign":
            assert outcome.status == "skipped"
            assert outcome.reason is not None
            assert outcome.reason.startswith("needs 16,384 threads a block; this device allows ")
        elif kernel == "liar":
            assert outcome.status == "wrong"
            assert outcome.median_ns is None
        elif kernel == "typo":
            assert outcome.status == "failed"
            assert outcome.reason is not None
            assert re.search(r"typo\.cu[:(]20\b.*summ", outcome.reason)
        else:
            assert outcome.status == "measured", outcome.reason
            assert outcome.reason is None
            assert outcome.median_ns is not None
            assert outcome.accuracy.bound_ratio is not None
            assert outcome.accuracy.bound_ratio <= 1


def test_a_record_has_the_fields_that_programs_rely_on(sweep: tuple[Any, Path]) -> None:
    lines = [json.loads(line) for line in sweep[1].read_text(encoding="utf-8").splitlines()]
    environment, *outcomes = lines
    assert environment["type"] == "environment"
    assert environment["schema"] == 1
    assert environment.keys() >= {
        "argv", "time", "host", "os", "python", "packages", "devices", "project_revision",
    }  # fmt: skip
    assert environment["devices"][0].keys() >= {"name", "driver", "toolkit"}
    for record in outcomes:
        assert record["type"] == "outcome"
        assert record.keys() >= {
            "kernel", "sha256", "params", "problem", "backend", "device", "launch", "status",
            "reason", "samples_ns", "median_ns", "max_rel_err", "avg_rel_err", "bound_ratio",
            "block_median_ns",
        }  # fmt: skip
        assert record["problem"].keys() >= {"M", "N", "K"}
        assert record["problem"]["seed"] == 5
        if record["status"] == "measured":
            assert record["launch"].keys() == {"grid", "block", "shared_bytes"}
            assert len(record["samples_ns"]) >= 3
            assert record["block_median_ns"] > 0
        else:
            assert record["reason"]
            assert record["median_ns"] is None
            assert record["block_median_ns"] is None
    assert "NaN" not in sweep[1].read_text(encoding="utf-8")


def test_json_prints_the_same_objects_as_one_array(sweep: tuple[Any, Path]) -> None:
    lines = [json.loads(line) for line in sweep[1].read_text(encoding="utf-8").splitlines()]
    assert json.loads(sweep[0].stdout) == lines


COUNTS = "10 measured, 2 wrong, 2 failed, 12 skipped"


@pytest.mark.parametrize("fmt", report.FORMATS)
def test_every_format_shows_every_kernel(
    fmt: str, sweep: tuple[Any, Path], matbench: Matbench
) -> None:
    text = matbench("report", sweep[1], "--format", fmt).stdout
    for kernel in ("good", "once", "foreign", "slow", "liar", "typo", "cuda-only"):
        assert kernel in text or kernel.replace("-", "\\-") in text
    assert "\x1b" not in text
    if fmt not in ("csv", "json"):
        assert COUNTS in text


def test_csv_reads_back(sweep: tuple[Any, Path], matbench: Matbench) -> None:
    _, outcomes = results.read(sweep[1])
    text = matbench("report", sweep[1], "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(outcomes)
    expected = {
        (o.case.kernel, o.case.params.get("TILE"), o.case.problem.size): o.median_ns
        for o in outcomes
    }
    for row in rows:
        tile = re.search(r"TILE=(\d+)", row["params"])
        median = expected.pop((row["kernel"], int(tile[1]) if tile else None, row["size"]))
        assert row["median_ns"] == ("" if median is None else str(median))
    assert not expected


def test_tables_read_back(sweep: tuple[Any, Path], matbench: Matbench) -> None:
    def shown(fmt: str) -> str:
        return matbench("report", sweep[1], "--format", fmt).stdout

    def cells(lines: list[list[str]]) -> list[list[str]]:
        return [[cell.strip() for cell in line] for line in lines]

    class Table(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.rows: list[list[str]] = []

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag == "tr":
                self.rows.append([])
            elif tag in ("td", "th"):
                self.rows[-1].append("")

        def handle_data(self, data: str) -> None:
            if self.rows and self.rows[-1]:
                self.rows[-1][-1] += data

    tab = [line.split("\t") for line in shown("tsv").splitlines() if line.count("\t") > 5]
    pipes = [
        re.split(r"(?<!\\)\|", line)[1:-1]
        for line in shown("github").splitlines()
        if line[:1] == "|"
    ]
    page = Table()
    page.feed(shown("html"))
    tables = [
        cells(tab),
        cells([pipes[0], *pipes[2:]]),
        cells([row for row in page.rows if len(row) > 5]),
    ]
    for table in tables:
        assert len(table) == 1 + 26
        assert len({len(row) for row in table}) == 1
        names = [
            re.sub(r"\W*★", "", row[table[0].index("kernel")]).replace("\\", "")
            for row in table[1:]
        ]
        assert {name: names.count(name) for name in names} == {
            "good": 4, "slow": 4, "liar": 4, "typo": 4, "cuda-only": 4, "foreign": 4, "once": 2,
        }  # fmt: skip


def test_the_fastest_right_case_leads_each_size(
    sweep: tuple[Any, Path], matbench: Matbench
) -> None:
    text = matbench("report", sweep[1], "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["size"] for row in rows] == [size for size in SIZES for _ in range(13)]
    order = ["measured", "wrong", "failed", "skipped"]
    for size in SIZES:
        group = [row for row in rows if row["size"] == size]
        ranks = [order.index(row["status"]) for row in group]
        assert ranks == sorted(ranks)
        measured = [row for row in group if row["status"] == "measured"]
        times = [float(row["median_ns"]) for row in measured]
        assert times == sorted(times)
        best = [row for row in group if row["best"] == "true"]
        assert best == [row for row, time in zip(measured, times, strict=True) if time == times[0]]
        assert measured[-1]["kernel"] == "slow"
        assert float(measured[-1]["times_slowest"]) == 1
        assert float(measured[0]["times_slowest"]) == pytest.approx(times[-1] / times[0])
        for row in measured:
            m, n, k = int(row["M"]), int(row["N"]), int(row["K"])
            speed = 2 * m * n * k / float(row["median_ns"])
            assert float(row["gflops"]) == pytest.approx(speed, rel=1e-6)


def test_the_table_names_its_device_and_counts(
    sweep: tuple[Any, Path], matbench: Matbench, device: DeviceInfo
) -> None:
    text = matbench("report", sweep[1]).stdout
    assert device.backend in text
    assert device.name in text
    assert ("CPU timings" in text) == (device.kind == "cpu")
    assert text.rstrip().endswith(COUNTS)
    for title in (
        "kernel",
        "parameters",
        "time",
        "per block",
        "FLOP/s",
        "max rel err",
        "avg rel err",
    ):
        assert title in text
    assert "summ" in text  # the compiler's message
    assert text.count("★") >= len(SIZES)
    # Of two failures of one case the later stands for both.
    both = matbench("report", sweep[1], sweep[1]).stdout
    assert both.rstrip().endswith("20 measured, 4 wrong, 2 failed, 24 skipped")


# -- what is run ---------------------------------------------------------------------------------


def run(matbench: Matbench, *arguments: str | Path, code: int | None = 0) -> Any:
    return matbench("run", *QUICK, *arguments, code=code)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, matbench: Matbench, device: DeviceInfo) -> Any:
    """Which cases a command line means, without a process that runs them."""

    def skip(self: worker.Worker, case: Any) -> Outcome:
        from matbench.measure.bench import not_measured

        return not_measured(case, self.device, "skipped", "for this test")

    monkeypatch.setattr(worker.Worker, "run", skip)
    monkeypatch.setattr(worker.Crew, "build_ahead", lambda *_: None)

    def plan(*arguments: str | Path) -> list[Outcome]:
        matbench("run", *arguments)
        return last_run()

    return plan


TUTORIAL = {
    "thread-1d", "block-1d", "shared-row", "single-block", "naive-2d", "tiled", "tiled-dynamic",
    "kahan",
}  # fmt: skip


def test_a_bare_run_takes_the_tutorial(planned: Any) -> None:
    outcomes = planned()
    assert {o.case.kernel for o in outcomes} >= TUTORIAL
    assert {o.case.group for o in outcomes} == {"tutorial"}
    assert {o.case.problem.size for o in outcomes} == {"256", "1000"}
    tiles = {o.case.params["TILE"] for o in outcomes if o.case.kernel == "tiled"}
    assert tiles == {8, 16, 32}
    assert {(o.case.problem.seed, o.case.problem.inputs) for o in outcomes} == {(0, "uniform")}


def test_groups(planned: Any) -> None:
    kernels = [kernel for kernel in catalogue.builtin() if kernel.workload == "matmul"]
    every = {kernel.name: kernel.group for kernel in kernels}
    for group in ("tutorial", "ladder", "baseline"):
        names = {name for name, of in every.items() if of == group}
        assert {o.case.kernel for o in planned("--group", group, "--sizes", "8")} == names
    assert {o.case.kernel for o in planned("--group", "all", "--sizes", "8")} == set(every)
    assert {o.case.kernel for o in planned("numpy", "--group", "ladder", "--sizes", "8")} == {
        "numpy", *(name for name, of in every.items() if of == "ladder")
    }  # fmt: skip


def test_tiles_take_the_place_of_a_kernels_own(planned: Any) -> None:
    outcomes = planned("tiled", "thread-1d", "single-block", "--tiles", "4,8", "--sizes", "8")
    assert [(o.case.kernel, o.case.params) for o in outcomes] == [
        ("tiled", {"TILE": 4}), ("tiled", {"TILE": 8}), ("thread-1d", {"THREADS": 256}),
        ("single-block", {}),
    ]  # fmt: skip


def test_set_takes_the_place_of_other_constants(planned: Any) -> None:
    outcomes = planned(
        "thread-1d", "tiled", "--set", "THREADS=64,128", "--set", "TILE=4", "--sizes", "8"
    )
    assert [o.case.params for o in outcomes] == [{"THREADS": 64}, {"THREADS": 128}, {"TILE": 4}]


def test_names_and_files(planned: Any, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("mine", "other"):
        (folder / f"{name}.cu").write_text(kernel_text(name), encoding="utf-8")

    def names(*arguments: str | Path) -> list[str]:
        return [o.case.kernel for o in planned("--sizes", "8", "--tiles", "8", *arguments)]

    assert names("--kernel", folder / "mine.cu") == ["mine"]
    assert names("--kernel", folder / "mine.cu", "--kernel", folder / "other.cu") == [
        "mine",
        "other",
    ]
    assert names("--kernels-dir", folder) == ["mine", "other"]
    assert names("--kernels-dir", folder, "--kernel", folder / "mine.cu") == ["mine", "other"]
    assert names("tiled", "--kernel", folder / "mine.cu") == ["tiled", "mine"]
    assert names("tiled", "tiled", "kahan") == ["tiled", "kahan"]


def test_sizes_seed_and_inputs(planned: Any) -> None:
    found = planned("single-block", "--sizes", "3,2x3x4,3", "--seed", "7", "--inputs", "normal")
    assert [(o.case.problem.M, o.case.problem.N, o.case.problem.K) for o in found] == [
        (3, 3, 3),
        (2, 3, 4),
    ]
    assert {(o.case.problem.seed, o.case.problem.inputs) for o in found} == {(7, "normal")}


def test_smoke_means_every_kernel_at_awkward_sizes(planned: Any) -> None:
    outcomes = planned("--smoke")
    assert {o.case.kernel for o in outcomes} == {kernel.name for kernel in catalogue.builtin()}
    sizes = {o.case.problem.size for o in outcomes if o.case.problem.workload == "matmul"}
    assert sizes == {"1", "17", "33", "65x31x129"}
    assert {o.case.problem.workload for o in outcomes} == set(workloads.WORKLOADS)
    assert {o.case.params["TILE"] for o in outcomes if o.case.kernel == "tiled"} == {8, 16, 32}


def test_all_right_or_skipped_is_success(matbench: Matbench, device: DeviceInfo) -> None:
    result = run(matbench, "tiled", "--tiles", "8,500", "--sizes", "9", "--inputs", "signed")
    assert summary(last_run()) == [("tiled", 8, "9", "measured"), ("tiled", 500, "9", "skipped")]
    [_, skipped] = last_run()
    assert skipped.reason is not None
    assert skipped.reason.startswith("needs TILE * TILE <= max_threads_per_block (TILE = 500, ")
    assert skipped.reason in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_a_baseline_on_the_host(matbench: Matbench, device: DeviceInfo) -> None:
    run(matbench, "--group", "baseline", "--sizes", "20,300")
    found = {(o.case.kernel, o.case.problem.size): o for o in last_run()}
    assert found["numpy", "20"].status == found["numpy", "300"].status == "measured"
    assert found["numpy", "20"].device_kind == "cpu"
    loop = found["host-loop", "300"]
    assert loop.status == "skipped"
    assert loop.reason is not None
    try:
        backends.host_device()
    except backends.UnavailableError:
        assert "OpenCL" in loop.reason
    else:
        assert loop.reason.startswith("needs M * N * K <= 2**24 (M = 300")
        assert found["host-loop", "20"].status == "measured"


def test_out_of_memory_is_a_row_that_says_how_much(matbench: Matbench, device: DeviceInfo) -> None:
    result = run(matbench, "tiled", "--tiles", "16", "--sizes", "1000000x1000000x1,8", code=1)
    large, small = last_run()
    assert (large.status, small.status) == ("failed", "measured")
    assert large.reason is not None
    assert re.match(r"out of (host|device) memory", large.reason)
    assert "48,000,032,000,000 bytes" in large.reason
    assert "48,000,032,000,000 bytes" in result.stdout


def test_what_json_and_csv_print_is_all_there_is(matbench: Matbench, device: DeviceInfo) -> None:
    for fmt in ("json", "csv", "plain"):
        result = run(matbench, "tiled", "--tiles", "8", "--sizes", "5", "--format", fmt)
        assert result.stderr == ""
        assert "\x1b" not in result.stdout
        assert "tiled" in result.stdout


# -- output files --------------------------------------------------------------------------------


def test_outputs_are_new_appended_to_replaced_or_resumed(
    matbench: Matbench, device: DeviceInfo
) -> None:
    output = Path("out.jsonl")

    def kept() -> list[tuple[str, int | None, str, str]]:
        return summary(results.read(output)[1])

    eight = ("tiled", 8, "9", "measured")
    sixteen = ("tiled", 16, "9", "measured")
    run(matbench, "tiled", "--sizes", "9", "--tiles", "8", "--output", output)
    assert kept() == [eight]
    first = output.read_bytes()

    run(matbench, "tiled", "--sizes", "9", "--tiles", "16", "--output", output, "--append")
    assert kept() == [eight, sixteen]
    assert output.read_bytes().startswith(first)
    assert len(results.read(output)[0]) == 2

    run(matbench, "tiled", "--sizes", "9", "--tiles", "16", "--output", output, "--force")
    assert kept() == [sixteen]

    before = output.read_bytes()
    table = run(matbench, "tiled", "--sizes", "9", "--tiles", "8,16", "--resume", output).stdout
    assert kept() == [sixteen, eight]
    assert output.read_bytes().startswith(before)
    assert "2 measured" in table
    before = output.read_bytes()
    run(matbench, "tiled", "--sizes", "9", "--tiles", "8,16", "--resume", output)
    assert output.read_bytes() == before

    run(matbench, "tiled", "--sizes", "9", "--tiles", "8", "--resume", "new.jsonl")
    assert summary(results.read(Path("new.jsonl"))[1]) == [eight]
    assert {path.name for path in Path().iterdir() if path.suffix == ".jsonl"} == {
        "out.jsonl", "new.jsonl",
    }  # fmt: skip


def test_resuming_measures_a_changed_kernel_anew(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    arguments = ("--sizes", "9", "--resume", "out.jsonl", "--kernel", write_kernel("mine"))
    run(matbench, *arguments)
    run(matbench, *arguments)
    assert len(results.read(Path("out.jsonl"))[1]) == 1
    write_kernel("mine", front="deterministic = false")
    run(matbench, *arguments)
    first, second = results.read(Path("out.jsonl"))[1]
    assert first.sha256 != second.sha256


def test_a_torn_line_is_mended_and_said(matbench: Matbench, device: DeviceInfo) -> None:
    output = Path("out.jsonl")
    run(matbench, "tiled", "--sizes", "9", "--tiles", "8", "--output", output)
    whole = output.read_bytes()
    output.write_bytes(whole + b'{"type":"outcome","kern')
    result = run(matbench, "tiled", "--sizes", "9", "--tiles", "8", "--resume", output)
    assert result.stderr == "out.jsonl:3: not written to its end, so left out\n"
    assert output.read_bytes() == whole
    output.write_bytes(whole + b'{"type":"outcome","kern')
    shown = matbench("report", output)
    assert shown.stderr == "out.jsonl:3: not written to its end, so left out\n"
    assert "1 measured" in shown.stdout


# -- compare -------------------------------------------------------------------------------------


def compare(matbench: Matbench, *arguments: str | Path, code: int | None = 0) -> dict[str, Any]:
    result = matbench("compare", *arguments, "--sizes", "64", "--format", "json", code=code)
    [row] = json.loads(result.stdout)
    assert isinstance(row, dict)
    return row


def test_the_second_is_compared_with_the_first(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    files = ("--kernel", write_kernel("quick"), "--kernel", write_kernel("slow", body=SLOW))
    slower = compare(matbench, "quick", "slow", *files, "--fail-if-slower", "5%", code=1)
    assert slower["verdict"] == "SLOWER"
    assert slower["ratio"] > 2
    low, high = slower["ratio_interval"]
    assert 1 < low <= slower["ratio"] <= high
    assert slower["candidate_median_ns"] > slower["baseline_median_ns"] > 0
    assert slower["baseline_max_rel_err"] > 0
    assert slower["candidate_max_rel_err"] > 0
    faster = compare(matbench, "slow", "quick", *files, "--fail-if-slower", "5%")
    assert faster["verdict"] == "FASTER"
    assert faster["ratio"] < 0.5


def test_a_kernel_is_never_slower_than_itself(matbench: Matbench, device: DeviceInfo) -> None:
    row = compare(matbench, "tiled", "tiled", "--tiles", "16", "--threshold", "50%",
                  "--fail-if-slower", "50%")  # fmt: skip
    assert row["verdict"] == "SAME"
    assert 0.5 < row["ratio"] < 2


def test_a_comparison_is_printed_for_people(matbench: Matbench, device: DeviceInfo) -> None:
    arguments = ("compare", "tiled", "naive-2d", "--sizes", "16,24", "--tiles", "8")
    for fmt in ("rich", "github"):
        text = matbench(*arguments, "--format", fmt).stdout
        assert len(re.findall("FASTER|SLOWER|SAME|UNDECIDED", text)) >= 2
        assert "candidate naive-2d against baseline tiled" in text.replace("\\", "")
        for size in ("16", "24"):
            assert re.search(rf"^\W*{size}\b", text, re.MULTILINE)


def test_a_kernel_that_is_not_right_is_not_compared(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    path = write_kernel("liar")
    path.write_text(path.read_text().replace("k < K", "k < K - 1"))
    row = compare(matbench, "tiled", "liar", "--kernel", path, "--tiles", "8", code=1)
    assert row["verdict"] is None
    assert row["ratio"] is None
    assert "liar" in row["reason"]


def test_what_the_fastest_was_chosen_from_is_told(
    matbench: Matbench, device: DeviceInfo, write_kernel: KernelWriter
) -> None:
    path = write_kernel("partly")
    text = path.read_text(encoding="utf-8").replace("TILE = [8]", "TILE = [4, 8, 16]")
    path.write_text(text.replace("k < K", "k < K - (TILE == 16)"), encoding="utf-8")
    tiled = "tiled: the fastest of 3 by a quick look at TILE 8, 16, 32"
    partly = "partly: the fastest of 3 by a quick look at TILE 4, 8, 16; TILE=16 wrong"
    arguments = ("tiled", "partly", "--kernel", path)
    row = compare(matbench, *arguments)
    assert row["notes"] == [tiled, partly]
    assert row["candidate_params"]["TILE"] in (4, 8)
    assert row["timing_mode"] in ("hot", "cold")
    for more in ((), ("--matrix",), ("--format", "plain")):
        shown = matbench("compare", *arguments, "--sizes", "24", *more).stdout
        assert tiled in shown
        assert partly in shown
    # Where there is no choice nothing is said of one.
    assert compare(matbench, *arguments, "--tiles", "8")["notes"] == []


# -- list, show, info, cache ---------------------------------------------------------------------


def test_list_names_every_kernel(matbench: Matbench, write_kernel: KernelWriter) -> None:
    kernels = catalogue.builtin()
    for fmt in ("rich", "plain", "github"):
        text = matbench("list", "--format", fmt, "--kernel", write_kernel("mine")).stdout
        for kernel in kernels:
            assert kernel.name in text
            assert kernel.summary in text
        assert "For a test" in text
    rows = json.loads(matbench("list", "--format", "json").stdout)
    assert {row["kernel"] for row in rows} == {kernel.name for kernel in kernels}
    [tiled] = [row for row in rows if row["kernel"] == "tiled"]
    assert tiled["sweeps"] == "TILE 8, 16, 32"
    [loop] = [row for row in rows if row["kernel"] == "host-loop"]
    assert (loop["group"], loop["requires"]) == ("baseline", "host")


@pytest.mark.parametrize("kernel", catalogue.builtin(), ids=lambda kernel: kernel.name)
def test_show_tells_front_matter_in_words_and_the_source(
    kernel: catalogue.Kernel, matbench: Matbench
) -> None:
    text = matbench("show", kernel.name).stdout
    assert kernel.summary in text
    assert "// /// matbench" not in text
    if kernel.source:
        assert kernel.source.split("// ///\n", 1)[1].strip() in text
        assert f"{kernel.entry}({', '.join(kernel.args)})" in text
        for condition in kernel.launch.where:
            assert condition in text


def test_show_takes_a_file(matbench: Matbench, write_kernel: KernelWriter) -> None:
    text = matbench("show", "mine", "--kernel", write_kernel("mine")).stdout
    assert "For a test" in text
    assert "blockIdx.y * TILE" in text


def test_info_lists_devices_what_is_missing_and_the_cache(
    matbench: Matbench, device: DeviceInfo
) -> None:
    text = matbench("info").stdout
    assert device.label in text
    for name in backends.NAMES:
        try:
            found = backends.devices(name)
        except backends.UnavailableError as error:
            assert f"{name} cannot be used: {error}" in text
        else:
            for listed in found:
                assert listed.label in text
                assert listed.driver in text
                for label in listed.properties:
                    assert label in text
    assert re.search(r"cache: .+, [\d,.]+ MB of at most 2,147 MB", text)
    assert os.environ["MATBENCH_CACHE_DIR"] in text


def test_clearing_the_cache(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(folder))
    from matbench.cache import Cache

    Cache().put("key", bytes(2_000_000))
    assert matbench("cache", "clear").stdout == f"removed 2.0 MB from {folder}\n"
    assert list(folder.iterdir()) == []
    assert matbench("cache", "clear").stdout == f"removed 0.0 MB from {folder}\n"


def test_ctrl_c_where_there_is_no_table(
    matbench: Matbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "builtin", interrupted)
    for command in (["run"], ["list"], ["compare", "tiled", "kahan"], ["show", "tiled"]):
        result = matbench(*command, code=130)
        assert (result.stdout, result.stderr) == ("", "interrupted\n")


# -- what an outside reader stumbled over --------------------------------------------------------


def test_a_kernel_file_is_taken_wherever_a_kernel_is(
    matbench: Matbench, planned: Any, tmp_path: Path, write_kernel: KernelWriter
) -> None:
    path = write_kernel(name="mine")
    assert {o.case.kernel for o in planned(path, "--sizes", "8")} == {"mine"}
    assert "mine" in matbench("show", path).stdout
    missing = matbench("run", tmp_path / "gone.cu", code=2).stderr
    assert "gone.cu: cannot be read" in missing


def test_an_empty_group_is_no_other_one(matbench: Matbench) -> None:
    told = matbench("run", "--group", "ladder", "--workload", "reverse", code=2).stderr
    assert "--group ladder: it has no kernel of reverse" in told


def test_baselines_are_of_what_is_computed(matbench: Matbench, planned: Any) -> None:
    told = matbench("run", "--workload", "dot", "--baseline", "numpy", code=2).stderr
    assert "it computes matmul; there are: cublas-dot" in told
    found = {o.case.kernel for o in planned("dot-tree", "tiled", "--baseline", "cublas*")}
    assert found >= {"dot-tree", "tiled", "cublas", "cublas-dot"}


def test_a_folder_of_all_kinds_is_sifted_by_workload(
    planned: Any, tmp_path: Path, write_kernel: KernelWriter
) -> None:
    write_kernel("mine")
    source = next(k for k in catalogue.builtin() if k.name == "reverse-direct").source
    renamed = source.replace("reverse-direct", "turned").replace("reverse_direct", "turned")
    (tmp_path / "turned.cu").write_text(renamed, encoding="utf-8")
    found = planned("--workload", "reverse", "--kernels-dir", tmp_path)
    assert {o.case.kernel for o in found} == {"turned"}


def test_a_launch_of_nothing_fails(matbench: Matbench, write_kernel: KernelWriter) -> None:
    path = write_kernel(launch='block = ["TILE", "TILE"]\ngrid = ["N - 8", "1"]')
    result = matbench("run", path, "--sizes", "8", "--tiles", "8", "--format", "plain", code=1)
    assert "launch.grid 'N - 8' is 0; at least 1 is needed" in result.stdout


def test_nothing_to_judge_is_no_pass(matbench: Matbench, tmp_path: Path) -> None:
    told = matbench("compare", "tiled", "warp-tiled", "--sizes", "8", "--tiles", "8",
                    "--fail-if-slower", "5%", code=1).stderr  # fmt: skip
    assert "--fail-if-slower had nothing to judge" in told
    for name, kernel in (("a", "tiled"), ("b", "naive-2d")):
        matbench(
            "run", kernel, "--tiles", "8", "--sizes", "8", "--output", tmp_path / f"{name}.jsonl"
        )
    told = matbench("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--fail-if-slower",
                    "5%", code=1).stderr  # fmt: skip
    assert "had nothing to judge" in told


def test_a_setting_given_twice_is_refused(matbench: Matbench) -> None:
    told = matbench("run", "block-1d", "--set", "THREADS=128", "--set", "THREADS=64", code=2).stderr
    assert "given twice: THREADS; list its values once" in told


# -- folders and files that cannot be written ----------------------------------------------------


def outside(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, so that it opens the cache and its streams anew."""
    known = {name: value for name, value in os.environ.items() if name != "OCL_ICD_VENDORS"}
    return subprocess.run(
        [sys.executable, "-m", "matbench", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=known | environment,
    )


@pytest.mark.parametrize("command", [
    ["run", "tiled", "--sizes", "9", "--tiles", "8"], ["explain", "tiled", "--size", "9"], ["info"],
    ["compare", "tiled", "naive-2d", "--sizes", "9"],
], ids=lambda command: command[0])  # fmt: skip
@pytest.mark.parametrize("kind", ["file", "below a file", "not to be made"])
def test_an_unusable_cache_folder_is_one_line(
    command: list[str], kind: str, tmp_path: Path, device: DeviceInfo
) -> None:
    file = tmp_path / "file"
    file.touch()
    folder = {"file": file, "below a file": file / "x", "not to be made": Path("/proc/x")}[kind]
    if not Path("/proc").is_dir() and folder == Path("/proc/x"):
        pytest.skip("no /proc")
    done = outside(*command, MATBENCH_CACHE_DIR=str(folder))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    reason = "cannot be written: " if kind == "not to be made" else "not a folder; "
    assert done.stderr.startswith(f"matbench: cache folder {folder}: {reason}")
    assert "choose another with MATBENCH_CACHE_DIR" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="no folder that stays empty")
@pytest.mark.parametrize("command", [["run", "tiled"], ["explain", "tiled"], ["info"]])
def test_a_cache_folder_that_takes_no_file_is_one_line(
    command: list[str], device: DeviceInfo
) -> None:
    if "Intel" not in device.toolkit:
        pytest.skip("only the list of runtimes must be kept there")
    done = outside(*command, MATBENCH_CACHE_DIR="/proc/self/fdinfo")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("matbench: cache folder /proc/self/fdinfo: cannot be written: ")


def test_a_cache_that_is_a_file_is_not_cleared(
    matbench: Matbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    monkeypatch.setenv("MATBENCH_CACHE_DIR", str(file))
    result = matbench("cache", "clear", code=2)
    assert result.stderr == (
        f"matbench: cache folder {file}: not a folder; choose another with MATBENCH_CACHE_DIR\n"
    )
    assert file.read_text() == "kept"


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", [
    ["report", "FILE"], ["report", "FILE", "--format", "json"], ["explain", "tiled", "--size", "9"],
    ["list"], ["--help"], ["report", "--help"],
], ids=" ".join)  # fmt: skip
def test_a_full_disk_behind_standard_output_is_one_line(
    command: list[str], unbuffered: str, tmp_path: Path, device: DeviceInfo, matbench: Matbench
) -> None:
    file = tmp_path / "out.jsonl"
    matbench("run", "tiled", "--sizes", "9", "--tiles", "8", "--smoke", "--output", file)
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "matbench"]
            + [str(file) if word == "FILE" else word for word in command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    assert done.stderr == "matbench: standard output: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_records_that_cannot_be_written_are_one_line(matbench: Matbench) -> None:
    run = ("run", "tiled", "--sizes", "9", "--tiles", "8", "--smoke", "--output")
    result = matbench(*run, FULL, code=1)
    assert result.stderr == (
        "matbench: /dev/full: cannot be written: No space left on device; "
        "mend that, or name another file\n"
    )
    result = matbench(*run, "/proc/x.jsonl", code=2)
    assert result.stderr == (
        "matbench: /proc/x.jsonl: cannot be written: no file can be made in /proc; "
        "name another file\n"
    )
