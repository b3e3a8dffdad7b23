"""What commands print, and how they exit: the files beside this one. `make golden` rewrites them.

Each file holds what its commands print on a CPU, without what differs from run to run.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_regressions.file_regression import FileRegressionFixture
from support import candidates, warm
from support.cli import Matbench, Refusal
from support.gemm import Gemm
from support.golden import anywhere, csv_lines, leaves, steady
from support.kernels import GOOD_BODY, SLOW_BODY, kernel_text
from support.terminal import COMMAND

import matbench as api
from matbench import backends
from matbench.model import DeviceInfo
from matbench.show import formats

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.usefixtures("own_state")

SCALED = GOOD_BODY.replace("int K)", "int K, float alpha, float beta)").replace(
    "= sum;", "= alpha * sum + (beta == 0 ? 0 : beta * C[(size_t)row * N + column]);"
)
FACTORS = 'args = ["A", "B", "C", "M", "N", "K", "alpha", "beta"]\nbeta = [0, 0.5]'
EMPTY_GRID = 'block = ["TILE", "TILE"]\ngrid = ["N - 8", "1"]'
TILES = """block = ["TILE", "TILE"]
grid = ["N // TILE", "M // TILE"]
where = ["M % TILE + N % TILE == 0"]"""
PARTLY = kernel_text("partly").replace("TILE = [8]", "TILE = [4, 8]")
FUNCTIONS = """
def right(A, B):
    return A @ B

def wrong(A, B):
    return A @ B + 1
"""
HOST = """
void product(const float *A, const float *B, float *C, int M, int N, int K) {
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            float sum = 0;
            for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
"""
#: Good and faulty files, which lie in the folder of every command.
FILES = {
    "good.cu": kernel_text("good"),
    "slow.cu": kernel_text("slow", body=SLOW_BODY),
    "liar.cu": kernel_text("liar").replace("k < K", "k < K - 1"),
    "typo.cu": kernel_text("typo").replace("sum +=", "summ +="),
    "cuda-only.cu": kernel_text("cuda-only", front='requires = ["sm_999"]'),
    "broken.cu": kernel_text("broken").replace("[launch]", "[launch"),
    "unknown-key.cu": kernel_text("mine").replace("summary =", "sumary ="),
    "no-entry.cu": kernel_text("mine").replace("__global__ void", "__device__ void"),
    "not-closed.cu": kernel_text("mine").replace("\n// ///\n", "\n"),
    "two.cu": "__global__ void zero(float *C) { *C = 0; }\n" + candidates.NAIVE,
    "twice.cu": kernel_text("twice"),
    "twice.toml": "name = 'twice'\n",
    "beside.cu": candidates.NAIVE,
    "beside.toml": "\nentry = product\n",
    "kept.svg": "",
    "empty.cu": "",
    "claims.cu": kernel_text("claims", front='precision = "tf32"\ndeterministic = false'),
    "scaled.cu": kernel_text("scaled", front=FACTORS, body=SCALED),
    "empty-grid.cu": kernel_text("empty-grid", launch=EMPTY_GRID),
    "tiles.cu": kernel_text("tiles", launch=TILES),
    "partly.cu": PARTLY.replace("k < K", "k < K - (TILE == 4)"),
    "bare.cu": candidates.NAIVE,
    "square.cu": candidates.SQUARE,
    "functions.py": FUNCTIONS,
    "host.cpp": HOST,
    "gemm.cu": Gemm(transpose="NT", padding=3).source(),
}  # fmt: skip

#: The commands of each file.
COMMANDS: dict[str, list[Any]] = {
    "run": [
        "run good.cu slow.cu liar.cu typo.cu cuda-only.cu --sizes 33,48x17x20",
        "run good.cu broken.cu none.cu bare.cu empty.cu binary.cu folder.cu --sizes 17",
    ],
    "run-github": ["run good.cu liar.cu --sizes 33 --format github"],
    "run-csv": ["run good.cu liar.cu --sizes 33 --seed 5 --format csv"],
    "run-json": [
        "run good.cu --sizes 33 --format json", "run liar.cu tiles.cu --sizes 9 --format json",
    ],
    "run-junit": ["run good.cu liar.cu typo.cu cuda-only.cu --sizes 17 --format junit"],
    "run-skipped": [
        "run tiled --set TILE=500 --sizes 9", "run cuda-only.cu --sizes 9,17 --allow-skips",
        "run liar.cu --sizes 9 --allow-skips", "run empty-grid.cu --sizes 8",
        "run tiled --set TILE=16 --sizes 1000000x1000000x1", "run tiled --sizes 9 --alpha 2",
    ],
    "run-problems": [
        "run scaled.cu --sizes 17 --inputs signed --alpha 2",
        "run dot-tree --sizes 2^10 --inputs signed", "run good.cu --sizes 17 --replay 9f3C2b",
        "run gemm.cu numpy --sizes 17 --alpha=-0.5 --beta 1 --batch 1,3",
    ],
    "run-claims": ["run good.cu claims.cu --sizes 33"],
    "run-functions": [
        "run functions.py::right functions.py::wrong --baseline numpy --sizes 17",
        ["run", "host.cpp", "--entry", "host product", "--sizes", "17"],
    ],
    "run-adopted": ["run bare.cu square.cu --adopt --sizes 8x9x5"],
    "run-smoke": ["run good.cu tiles.cu --smoke"],
    "run-repeated": ["run good.cu --sizes 9 --repeat 2"],
    "run-resumed": [
        "run good.cu --sizes 9 --output out.jsonl", "run good.cu --sizes 9,10 --resume out.jsonl",
        "report out.jsonl --fastest",
    ],
    "compare": [
        "compare claims.cu slow.cu --sizes 33 --fail-if-slower 5% --max-time 5",
        "compare good.cu liar.cu --sizes 33",
        "compare tiled tiled-dynamic --sizes 8 --set TILE=500 --fail-if-slower 5%",
    ],
    "compare-fastest": ["compare slow.cu partly.cu --sizes 33 --max-time 5 --format github"],
    "compare-json": ["compare slow.cu good.cu --sizes 33 --max-time 5 --format json"],
    "check": ["check partly.cu --quick", "check tiles.cu --set TILE=4"],
    "blocks": ["blocks good.cu --sizes 33", "blocks liar.cu --sizes 33", "blocks numpy --sizes 33"],
    "blocks-json": ["blocks good.cu --sizes 33 --format json"],
    "show": ["kernels good.cu", "kernels scaled.cu", "kernels gemm.cu", "kernels numpy"],
    "help": [
        f"{name} --help" for name in ("run", "compare", "check", "blocks", "kernels", "serve")
    ],
}  # fmt: skip

#: Command lines that are refused.
REFUSED = [
    "xyzzy", "rnu",
    *(f"run {words}" for words in (
        "tild", "xyzzy", "--sizes 256,0", "--set TILE=8,0", "--set THREDS=8", "--set THREADS",
        "block-1d --set THREADS=128 --set THREADS=64", "--device 99",
        "--device abacus", "--alpha x", "--beta 1e99", "--batch 0", "--batch \u0663",
        "--replay 0x12", "empty.cu --adopt", "cubes-tree --baseline cublas",
        "--group ladder --workload reverse", "--workload dot --baseline numpy",
        "--inputs uniform,ones", "--inputs ones", "--format word", "--seed=-1", "--timeout 0",
        "--timeout nan", "--max-time inf", "--uncertainty fine", "--graph", "--szies 8", "--sizes",
        "none.cu", "none/", "./empty",
        "--output kept.jsonl", "--resume kept.jsonl", "--resume kept.jsonl --output kept.jsonl",
        "--output none/x.jsonl", "--output .",
        "--output kept.svg --picture kept.svg --force",
        "--replay xyz", "--replay 1 --resume kept.jsonl", "--repeat 0", "--repeat 101",
        "--workload dot --sizes 8x8x8", "--workload dot --sizes 2^1000",
        "--workload cubes --inputs uniform", "--workload reverse --inputs signed",
        "--workload dot --inputs digits", "--inputs ramp", "dot-tree --workload cubes",
        "tiled --front-matter std=c++17", "good.cu slow.cu --front-matter std=c++17",
        "good.cu slow.cu --entry good", "good.cu --front-matter precision",
        "good.cu --front-matter nothing=3", "good.cu --front-matter std=c++99",
        "good.cu --front-matter entry=good<3", "good.cu --front-matter entry=other",
        "good.cu --front-matter include_dirs=['gone']", "nowhere/a.cuh", "a.cuh", "twice.cu",
        "beside.cu", "two.cu", "good.cu tild", "bare.cu --contract transpose", "broken.cu",
        "unknown-key.cu", "no-entry.cu", "not-closed.cu",
    )),
    "kernels broken.cu", "kernels --diff tiled",
    "kernels tild", "kernels two.cu", "kernels tiled --diff tild", "check two.cu",
    "kernels single-block --diff", "compare tiled", "compare tiled kahan naive-2d",
    "compare tiled kahan --fail-if-slower lot",
    "compare tiled kahan --hot --cold --backend opencl",
    "compare tiled kahan --hot --graph --backend opencl", "compare tiled numpy",
    "compare tiled naive-2d --format junit", "compare old.jsonl new.jsonl",
    "compare dot-tree cubes-tree", "compare cublas cublas-bf16", "compare tf32x3 double-mma",
    "compare fp8-wgmma fp8-promoted", "compare kept.jsonl", "compare tiled kept.jsonl",
    "compare none.jsonl kept.jsonl", "compare kept.jsonl kept.jsonl", "report",
    "compare kept.jsonl kept.jsonl --sizes 8", "compare tiled kahan --ignore-environment",
    "report none.jsonl", "explain tiled --sizes 8,9", "explain tiled --inputs normal,uniform",
    "blocks tiled --sizes 8 --alpha 1,2", "serve --sizes abc",
]  # fmt: skip

#: What a program gives to a judge, and what a line of input asks `matbench serve`.
JUDGED: list[dict[str, Any]] = [
    {"candidate": "good.cu", "sizes": "33,8x9x5"},
    {"candidate": "liar.cu"},
    {"candidate": "nowhere.cu"},
    {"candidate": "tiledd"},
    {"candidate": "typo.cu"},
    {"candidate": "// no kernel\n"},
    {"candidate": ""},
    {"candidate": "a\0b.cu"},
    {"candidate": "x" * 2_000_000 + "\n"},
    {"candidate": kernel_text("fake", front='group = "baseline"')},
    {"candidate": "cuda-only.cu"},
    {"candidate": "good.cu", "contract": {"beta": 1.0}},
    {"candidate": "bare.cu", "contract": {"transpose": "NT"}},
    *({"candidate": "good.cu", **given} for given in (
        {"entry": "nothing"}, {"entry": "good<"}, {"front_matter": {"launch": 5}},
        {"front_matter": {"sweep": {"TILE": [0]}}}, {"front_matter": {"unknown": 1}},
    )),
    *({"candidate": "good.cu", **given} for given in (
        {"sizes": "abc"}, {"contract": {"transpose": "X"}},
    )),
]  # fmt: skip
NAN = float("nan")
MISTAKES: list[dict[str, Any]] = [
    {"sizes": "abc"}, {"device": "none such"}, {"inputs": "odd"}, {"timeout": NAN}, {"timeout": 0},
    {"max_time": float("inf")}, {"max_time": None}, {"seed": "a"}, {"backend": "metal"},
]  # fmt: skip
REQUESTS = [
    '{"id": 1, "path": "good.cu"}', "",
    json.dumps({"id": "two", "source": FILES["liar.cu"], "sizes": "9"}),
    '{"id": 3, "path": "nowhere.cu"}', '{"id": 4, "path": "nowhere.cu", "baseline": "tiled"}',
    "nonsense", "[1]", '{"id": 7}', '{"id": 7, "path": "a.cu", "source": "b"}',
    '{"id": 7, "path": "a.cu", "size": "33"}', '{"id": 7, "path": "tiled", "sizes": "abc"}',
    '{"id": 7, "path": "tiled", "baseline": "tiled", "entry": "x"}', "[" * 100_000,
    '{"id": 7, "path": "bare.cu", "contract": {"M": 1}}',
]  # fmt: skip


@pytest.fixture
def same(file_regression: FileRegressionFixture, device: DeviceInfo) -> Callable[..., None]:
    """Compares lines with a file."""
    if "Intel" not in device.toolkit or backends.choose("auto", None) != device:
        pytest.skip("the files are of Intel's OpenCL on a CPU")

    def same(name: str, lines: Iterable[str]) -> None:
        text = anywhere("".join(f"{line}\n" for line in lines), device)
        # `make golden` accepts what differs.
        file_regression.check(text, fullpath=FOLDER / f"{name}.txt", encoding="utf-8")

    return same


@pytest.fixture(autouse=True)
def files(own_state: None) -> None:
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("empty").mkdir()
    Path("folder.cu").mkdir()
    Path("binary.cu").write_bytes(b"\xff\xfe\x00")


def test_each_file_is_of_a_test() -> None:
    names = {*COMMANDS, "refused", "judge", "serve"}
    found = {file.stem for file in FOLDER.glob("*.txt")}
    assert {name for name in found if not name.startswith("pages-")} == names


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, matbench: Matbench, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        for command in COMMANDS[name]:
            words = command.split() if isinstance(command, str) else command
            done = matbench(*words, code=None)
            yield f"$ matbench {' '.join(words)}"
            if "json" in words:
                yield from leaves(json.loads(done.stdout), whole=words[:2] == ["run", "good.cu"])
            elif "csv" in words:
                yield from csv_lines(done.stdout)
            else:
                yield steady(done.stdout)
            yield from (f"stderr: {line}" for line in done.stderr.splitlines())
            yield f"exit code {int(done.exit_code)}\n"

    same(name, lines())


@pytest.mark.usefixtures("nothing_runs")
def test_refusals(refusal: Refusal, same: Callable[..., None]) -> None:
    """Each is one line, with exit code 2; nothing is run, lost or written."""
    same("refused", (f"{command}\n    {refusal(*command.split())}" for command in REFUSED))


def test_verdicts(device: DeviceInfo, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        for wrong in MISTAKES:
            with pytest.raises(api.UsageError) as raised:
                api.Judge(**{"backend": device.backend, **wrong})
            yield f"Judge({wrong})\n    UsageError: {raised.value}\n"
        with warm.workers(), api.Judge("33", backend=device.backend, max_time=0.01) as judge:
            for given in JUDGED:
                yield f"run({', '.join(f'{name}={value!r:.60}' for name, value in given.items())})"
                try:
                    verdict = judge.run(**given)
                except api.UsageError as error:
                    yield f"    UsageError: {error}\n"
                    continue
                yield f"    {verdict.kernel!r} {verdict.status}: {verdict.reason}"
                yield from (f"    case: {case.status}" for case in verdict.cases)
                if verdict.adoption:
                    yield f"    adoption: {verdict.adoption}"
                yield ""
            [row] = judge.run("good.cu").rows()
            yield from csv_lines(formats.csv_table(list(row), [list(row.values())]))
            for wrong in ({"max_time": NAN}, {"max_time": -1}, {"threshold": NAN}):
                with pytest.raises(api.UsageError) as raised:
                    judge.compare("tiled", "tiled", **wrong)
                yield f"compare({wrong})\n    UsageError: {raised.value}"
            for pair in (("good.cu", "liar.cu"), ("tiled", "nowhere.cu"), ("tiled", "dot-tree")):
                found = judge.compare(*pair)
                yield f"compare{pair}\n    {found.verdict}: {found.reason}"

    same("judge", lines())


def test_serving(device: DeviceInfo, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        command = [*COMMAND, "serve", "--sizes", "8", "--max-time", "0.01"]
        done = subprocess.run(command, input="\n".join(REQUESTS), capture_output=True, text=True)
        for line in done.stdout.splitlines():
            answer = json.loads(line)
            cases = [case["status"] for case in answer.pop("cases", ())]
            yield from leaves(answer)
            yield f"cases: {', '.join(cases)}\n" if cases else ""
        yield from (f"stderr: {line}" for line in done.stderr.splitlines())
        yield f"exit code {done.returncode}"

    same("serve", lines())
