"""`matbench serve`: requests and answers, one per line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from support import candidates
from support.kernels import SLOW_BODY, SPIN_BODY, kernel_text
from support.scripted import ENVIRONMENT
from support.terminal import COMMAND

from matbench.model import DeviceInfo
from matbench.records.outcome import Outcome


@contextmanager
def started(*words: str, scripted: bool = True) -> Iterator[Any]:
    """The command, whose streams are pipes; by default on a scripted device."""
    options = ["--backend", "opencl", "--sizes", "33", "--max-time", "0.01", "--timeout", "2"]
    with subprocess.Popen(
        [*COMMAND, "serve", *options, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **(ENVIRONMENT if scripted else {})},
    ) as process:  # fmt: skip
        yield process


def answers(*requests: Any, words: tuple[str, ...] = (), scripted: bool = True) -> list[Any]:
    """The answers to requests, or to lines of text."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in requests]
    with started(*words, scripted=scripted) as process:
        out, told = process.communicate("\n".join(lines), timeout=100)
    assert (process.returncode, told) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture(scope="module")
def answered() -> list[Any]:
    """What one process answers to several requests."""
    slow = {"source": kernel_text("slow", body=SLOW_BODY), "baseline": "tiled", "sizes": "128"}
    return answers(
        {"id": 1, "path": "tiled"}, "",
        {"id": "two", "source": kernel_text("hangs", body=SPIN_BODY)},
        {"source": kernel_text(), "sizes": "17", "front_matter": {"sweep": {"TILE": [4]}}},
        '{"path": "' + "x" * 9_000_000, {"id": 5, **slow},
        {"id": 6, "path": "nowhere.cu", "baseline": "tiled"}, {"id": 7, "path": "tiled"},
    )  # fmt: skip


def test_answers_come_in_order_with_their_ids(answered: list[Any]) -> None:
    assert [answer["id"] for answer in answered] == [1, "two", None, None, 5, 6, 7]
    good, hang, sized, *_, last = answered
    assert (good["kernel"], good["status"], good["reason"]) == ("tiled", "measured", None)
    assert good["median_ns"] > 0
    cases = msgspec.convert(good["cases"], list[Outcome])
    assert [case.case.problem.N for case in cases] == [33] * len(cases)
    assert hang["status"] == "failed"
    assert "took longer than 2.06 s" in hang["reason"]
    assert [case["case"]["problem"]["N"] for case in sized["cases"]] == [17]
    assert [case["case"]["params"] for case in sized["cases"]] == [{"TILE": 4}]
    assert last["status"] == "measured"


def test_who_writes_faster_than_it_answers_waits(tmp_path: Path) -> None:
    written = tmp_path / "answers"
    words, scripted = [*COMMAND, "serve"], {**os.environ, **ENVIRONMENT}
    with (
        subprocess.Popen(["yes", '{"id":1}'], stdout=subprocess.PIPE) as endless,
        written.open("wb") as answers,
        subprocess.Popen(words, stdin=endless.stdout, stdout=answers, env=scripted) as process,
    ):
        while not written.stat().st_size:
            time.sleep(0.05)
        time.sleep(0.5)
        asked = psutil.Process(endless.pid).io_counters().write_chars // len('{"id":1}\n')
        answered = written.read_bytes().count(b"\n")
        endless.kill()
        process.kill()
    assert asked - answered < 20_000  # most of them in the pipe


def test_a_line_that_is_too_long_is_answered(answered: list[Any]) -> None:
    assert "longer than" in answered[3]["error"]


def test_a_baseline_makes_a_comparison(answered: list[Any]) -> None:
    compared, broken = answered[4:6]
    assert compared["verdict"] == "SLOWER"
    assert compared["ratios"][0] > 1
    [comparison] = compared["comparisons"]
    assert comparison["candidate_name"] == "slow"
    assert comparison["candidate"]["case"]["problem"]["N"] == 128
    assert broken["verdict"] is None
    assert "nowhere.cu" in broken["reason"]


def test_a_contract_is_that_of_the_command_or_of_the_request(device: DeviceInfo) -> None:
    """On a real device: what a kernel computes is found out."""
    source, _ = candidates.FAULTY["b-transposed"]
    given = [{"source": source}, {"source": kernel_text(), "contract": {"beta": 1.0}}]
    words = ("--contract", "transpose=NT", "--timeout", "60", "--backend", device.backend)
    asked, other = answers(*given, words=words, scripted=False)
    assert (asked["status"], asked["reason"]) == ("measured", None)
    assert asked["adoption"]["table"]["transpose"] == "NT"
    assert (other["status"], other["reason"]) == (
        "wrong",
        "computes C = A·B; asked for C = A·B + C",
    )


def test_a_text_of_one_line_is_a_text() -> None:
    [answer] = answers({"source": "tiled"})
    assert answer["status"] == "failed"
    assert "cannot be parsed as CUDA C++" in answer["reason"]


def test_each_answer_comes_before_the_next_request() -> None:
    with started() as process:
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "path": "tiled"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_and_its_processes(number: signal.Signals) -> None:
    with started() as process:
        process.stdin.write(json.dumps({"path": "tiled"}) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert process.stderr.read() == "interrupted\n"
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert (len(gone), alive) == (len(children), [])


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with started() as process:
        process.stdout.close()
        process.stdin.write(json.dumps({"path": "tiled"}) + "\n")
        process.stdin.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == ""


def test_it_waits_for_input_without_using_a_processor() -> None:
    with started() as process:
        ends, before, used = time.monotonic() + 60, -1.0, 0.0
        while used - before > 0.05:  # until all is imported
            assert time.monotonic() < ends
            before = used
            time.sleep(0.5)
            used = sum(psutil.Process(process.pid).cpu_times()[:2])
        process.stdin.close()
        assert process.wait(20) == 0
