"""What commands print, and how they exit: the files beside this one. `make golden` rewrites them.

Each file holds what its commands print on a CPU, without what differs from run to run.
"""

from __future__ import annotations

import json
import math
import re
import shlex
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
from support.kernels import changed, kernel_text, text_of
from support.terminal import COMMAND
from support.toml import table

import matbench as api
from matbench import backends
from matbench.model import DeviceInfo
from matbench.show import formats

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.usefixtures("own_state")


def made(
    file: str, name: str = "", text: str | None = None, changes: Any = (), **parts: str
) -> str:
    """A file of `files.toml`."""
    if text is not None:
        return text
    if "body" in parts:
        parts["body"] = text_of(parts["body"])
    return changed(kernel_text(name or file.removesuffix(".cu"), **parts), *changes)


#: The files that lie in the folder of every command.
FILES = {file: made(file, **row) for file, row in table(FOLDER / "files.toml").items()} | {
    "two.cu": "__global__ void zero(float *C) { *C = 0; }\n" + candidates.NAIVE,
    "beside.cu": candidates.NAIVE,
    "bare.cu": candidates.NAIVE,
    "square.cu": candidates.SQUARE,
    "host.cpp": text_of("sgemm.c").replace("sgemm", "product"),
    "gemm.cu": Gemm(transpose="NT", padding=3).source(),
}

#: What each file holds, its commands too: a new one is written there, before `make golden`.
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
COMMANDS = {name: re.findall(r"(?m)^\$ matbench (.*)$", text) for name, text in TEXTS.items()}


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


@pytest.mark.parametrize("name", [name for name in COMMANDS if COMMANDS[name]])
def test_commands(name: str, matbench: Matbench, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        for command in COMMANDS[name]:
            words = shlex.split(command)
            done = matbench(*words, code=None)
            yield f"$ matbench {command}"
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
    refused = re.findall(r"(?m)^\S.*$", TEXTS["refused"])
    same("refused", (f"{command}\n    {refusal(*shlex.split(command))}" for command in refused))


def told(found: Any) -> Iterator[str]:
    """What a judge says of one kernel, as a row too, or of two."""
    if isinstance(found, dict):
        yield from csv_lines(formats.csv_table(list(found), [list(found.values())]))
    elif isinstance(found, api.Verdict):
        yield f"    {found.kernel!r} {found.status}: {found.reason}"
        yield from (f"    case: {case.status}" for case in found.cases)
        if found.adoption:
            yield f"    adoption: {found.adoption}"
    else:
        yield f"    {found.verdict}: {found.reason}"


def test_verdicts(device: DeviceInfo, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        with warm.workers(), api.Judge("33", backend=device.backend, max_time=0.01) as judge:
            known = {
                "Judge": lambda **given: api.Judge(**{"backend": device.backend, **given}),
                "run": judge.run, "row": lambda text: judge.run(text).rows()[0],
                "compare": judge.compare, "nan": math.nan, "inf": math.inf,
                "LONG": "x" * 2_000_000 + "\n", "TEXT": kernel_text(),
                "BASELINE": kernel_text("fake", front='group = "baseline"'),
            }  # fmt: skip
            for call in re.findall(r"(?m)^(?:Judge|run|row|compare)\(.*\)$", TEXTS["judge"]):
                yield call
                try:
                    yield from told(eval(call, known))
                except api.UsageError as error:
                    yield f"    UsageError: {error}"
                yield ""

    same("judge", lines())


def test_serving(device: DeviceInfo, same: Callable[..., None]) -> None:
    def lines() -> Iterator[str]:
        requests = re.findall(r"(?m)^> ?(.*)$", TEXTS["serve"])
        yield from (f"> {request}".strip() for request in requests)
        yield ""
        known = {"LIAR": json.dumps(FILES["liar.cu"]), "MANY": "[" * 100_000}
        asked = re.sub("LIAR|MANY", lambda found: known[found[0]], "\n".join(requests))
        command = [*COMMAND, "serve", "--sizes", "8", "--max-time", "0.01"]
        done = subprocess.run(command, input=asked, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            answer = json.loads(line)
            cases = [case["status"] for case in answer.pop("cases", ())]
            yield from leaves(answer)
            yield f"cases: {', '.join(cases)}\n" if cases else ""
        yield from (f"stderr: {line}" for line in done.stderr.splitlines())
        yield f"exit code {done.returncode}"

    same("serve", lines())
