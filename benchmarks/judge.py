"""A thousand kernels through one `Judge`, and some through `matbench serve`.

45% are right with constants of their own, 25% wrong, 15% do not compile, 10% repeat an earlier one,
3% crash and 2% hang (for a long time, not for ever).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import common
import psutil

import matbench
from matbench import backends

KERNEL = """// /// matbench
// name = "candidate-{number}"
// [launch]
// block = [{width}, {height}]
// grid = ["ceil_div(N, {width})", "ceil_div(M, {height})"]
// ///

extern "C" __global__ void candidate(const float *A, const float *B, float *C, int M, int N, int K)
{{
    const int row = blockIdx.y * {height} + threadIdx.y;
    const int column = blockIdx.x * {width} + threadIdx.x;
    {first}
    if (row {below} M && column < N) {{
        float sum = 0.0f;
#pragma unroll {unroll}
        for (int k = {start}; k < K; ++k)
            sum += A[(size_t)row * K + {index}] * B[(size_t)k * N + column];
        C[(size_t)row * N + column] = sum{end};
    }}
}}
"""
RIGHT = {"first": "", "below": "<", "start": "0", "index": "k", "end": ""}
WRONG: tuple[dict[str, str], ...] = (
    {"start": "1"},
    {"index": "K - 1 - k"},
    {"end": " * 1.001f"},
    {"below": "< M - 1 && row <"},
    {"index": "(k ^ 1)"},
)
BROKEN = ({"end": " + nothing"}, {"below": "<< <"}, {"first": "float row;"}, {"end": ";;}}}}"})
CRASH = {"first": "*(volatile int *)(size_t)(8 * (row == 0)) = 1;"}
HANG = {
    "first": """
#ifdef __CUDACC__
    const long long end = clock64() + 16000000000;
    while (clock64() < end) { }
#else
    volatile float x = 1.0f;
    for (int i = 0; i < (1 << 28); ++i)
        x = x * 1.01f;
#endif
"""
}
#: Of the launch: block widths and heights.
BLOCKS = ((8, 8), (16, 16), (32, 8), (32, 4), (64, 2), (32, 16), (16, 8))


class Candidate(NamedTuple):
    """The text of a kernel file, and the status that its verdict must have."""

    text: str
    status: str


def candidates(count: int, seed: int = 0) -> list[Candidate]:
    """So many kernels of all kinds, in random order."""
    draw = random.Random(seed)
    shares = {"right": 0.45, "wrong": 0.25, "broken": 0.15, "repeated": 0.1, "crash": 0.03}
    kinds = [kind for kind, share in shares.items() for _ in range(round(share * count))]
    kinds += ["hang"] * (count - len(kinds))
    draw.shuffle(kinds)
    made: list[Candidate] = []
    for number, kind in enumerate(kinds):
        if kind == "repeated" and made:
            made.append(draw.choice([one for one in made if one.status != "failed"] or made))
            continue
        width, height = draw.choice(BLOCKS)
        changed: dict[str, dict[str, str]] = {
            "wrong": draw.choice(WRONG), "broken": draw.choice(BROKEN), "crash": CRASH, "hang": HANG
        }  # fmt: skip
        text = KERNEL.format(
            number=number, width=width, height=height, unroll=draw.choice((1, 2, 4, 8)),
            **RIGHT | changed.get(kind, {}),
        )  # fmt: skip
        failed = kind in ("broken", "crash", "hang")
        status = "failed" if failed else "wrong" if kind == "wrong" else "measured"
        made.append(Candidate(text, status))
    return made


def memory_bytes(process: psutil.Process) -> int:
    return int(process.memory_info().rss)


def others() -> list[psutil.Process]:
    """Worker processes, without those that Python needs to start and clean up after them."""
    started = psutil.Process().children()
    return [process for one in started for process in one.children(recursive=True)]


def left_behind() -> set[Path]:
    """What matbench leaves in the folder for temporary files."""
    return set(Path(tempfile.gettempdir()).glob("matbench*"))


def judged(all_candidates: Iterable[Candidate], judge: matbench.Judge) -> Iterator[tuple[str, str]]:
    """The status and reason of each."""
    for verdict in judge.run_all(candidate.text for candidate in all_candidates):
        yield verdict.status, verdict.reason or ""


def served(all_candidates: Iterable[Candidate], words: list[str]) -> Iterator[tuple[str, str]]:
    """The same from `matbench serve`."""
    requests = [
        json.dumps({"id": number, "source": one.text}) for number, one in enumerate(all_candidates)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "matbench", "serve", *words],
        input="\n".join(requests), capture_output=True, text=True, check=True,
    )  # fmt: skip
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        yield answer["status"], answer["reason"] or ""


def growth(judge: matbench.Judge, count: int) -> tuple[float, float]:
    """How much the memory of this process and of the worker grows over so many kernels that run."""
    given = [one.text for one in candidates(2 * count, seed=2) if one.status != "failed"]
    used: list[tuple[int, int]] = []
    for number, _ in enumerate(judge.run_all(given[:count]), 1):
        if number in (count // 4, count):
            used.append((memory_bytes(psutil.Process()), sum(map(memory_bytes, others()))))
    (own, worker), (own_later, worker_later) = used
    return own_later / own - 1, worker_later / worker - 1


def warm_s(judge: matbench.Judge, text: str, count: int = 5) -> float:
    """Seconds for a verdict on a kernel that is compiled."""
    judge.run(text)
    started = time.perf_counter()
    for _ in range(count):
        judge.run(text)
    return (time.perf_counter() - started) / count


def unexpected(given: list[Candidate], answers: Iterable[tuple[str, str]]) -> int:
    """How many statuses are not as expected; each kind is printed."""
    kinds: Counter[str] = Counter()
    started = time.perf_counter()
    for number, (one, (status, reason)) in enumerate(zip(given, answers, strict=True), 1):
        if status != one.status:
            kinds[f"{one.status} expected, {status}: {reason:.100}"] += 1
        if number % 100 == 0:
            used = memory_bytes(psutil.Process()) / 2**20
            print(f"{number}: {time.perf_counter() - started:.0f} s, {used:.0f} MiB", flush=True)
    for words, count in kinds.items():
        print(f"{count} × {words}")
    return sum(kinds.values())


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--served", type=int, default=200)
    chosen = parser.parse_args()
    info = backends.choose(chosen.backend, chosen.device)
    findings = common.Findings("judge", chosen, info)
    before = left_behind()
    given, through = candidates(chosen.count), candidates(chosen.served, seed=1)
    with matbench.Judge("256", backend=info.backend, device=str(info.index), timeout=2) as judge:
        started = time.perf_counter()
        wrong = unexpected(given, judged(given, judge))
        wall_s = time.perf_counter() - started
        verdict_s = warm_s(judge, next(one.text for one in given if one.status == "measured"))
        own, worker = growth(judge, max(8, chosen.count // 5))
    left = [*others(), *left_behind() - before]
    print("left:", *left)
    words = [*common.on(info), "--sizes", "256", "--timeout", "2"]
    wrong += unexpected(through, served(through, words))
    findings.figures += [
        common.Figure("verdicts not as expected", wrong, "", 0),
        common.Figure(
            "wall", wall_s / 60, "min", (8 if info.kind == "gpu" else 12) * len(given) / 1000
        ),
        common.Figure("a warm verdict", verdict_s, "s", 0.35),
        common.Figure("processes and files left", len(left), "", 0),
        common.Figure("growth of this process", own, "", 0.1),
        common.Figure("growth of the worker", worker, "", 0.1),
    ]
    findings.close()


if __name__ == "__main__":
    main()
