"""`matbench watch`: saves of a real file, with output to a pipe and a terminal."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.kernels import SLOW_BODY, WRONG_BODY, KernelWriter, kernel_text
from support.terminal import COMMAND, assert_gone, on_terminal

pytestmark = pytest.mark.usefixtures("scripted_device")

QUICK = ("--sizes", "48", "--max-time", "0.01")


def save(path: Path, text: str) -> None:
    """As most editors do: a new file replaces it."""
    other = path.with_suffix(".tmp")
    other.write_text(text, encoding="utf-8")
    other.replace(path)


class Watched:
    """The running command on a file, with its output in a pipe."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "watch", *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.waiting = b""

    def line(self, limit_s: float = 60) -> str:
        """The next line, as soon as it is available."""
        assert self.process.stdout is not None
        ends = time.monotonic() + limit_s
        while b"\n" not in self.waiting:
            left = max(0.0, ends - time.monotonic())
            ready, _, _ = select.select([self.process.stdout], [], [], left)
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert piece, f"no line came; so far {self.waiting!r}"
            self.waiting += piece
        line, _, self.waiting = self.waiting.partition(b"\n")
        return line.decode()

    def interrupt(self) -> tuple[int, str]:
        """Ctrl-C; its exit code and what it wrote to standard error."""
        os.killpg(self.process.pid, signal.SIGINT)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors.decode()


@pytest.fixture
def watched() -> Iterator[Callable[..., Watched]]:
    started: list[Watched] = []

    def start(*arguments: str | Path) -> Watched:
        started.append(Watched(*arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.communicate()


@pytest.mark.real
def test_each_save_gets_a_line(write_kernel: KernelWriter, watched: Callable[..., Watched]) -> None:
    path = write_kernel(body=SLOW_BODY)
    slow, good = path.read_text(encoding="utf-8"), kernel_text()
    watch = watched(path, "--sizes", "48", "--max-time", "2")  # enough for a verdict
    first = watch.line()
    assert re.match(
        r"mine.cu version 1, \d\d:\d\d:\d\d: right; [\d.]+ [µm]s at 48 \(TILE=8\)", first
    )
    assert "version 1:" not in first

    # Not compiled: the compiler's message, with file and line.
    save(path, good.replace("sum +=", "summ +="))
    number = 1 + good[: good.index("sum +=")].count("\n")
    line = watch.line()
    assert "version 2" in line
    assert re.search(
        rf"not timed: mine TILE=8 at 48 failed: .*mine\.cu:{number}:\d+: error.*summ", line
    )

    # Not loaded: the line of the front matter.
    save(path, good.replace("// block", "// blok"))
    number = 1 + good[: good.index("// block")].count("\n")
    assert f"not timed: {path}:{number}: unknown key `blok`; did you mean `block`?" in watch.line()

    # Wrong: which element, expected and actual value. Saved in place this time.
    path.write_text(good.replace("k < K", "k < K - 1"), encoding="utf-8")
    line = watch.line()
    assert re.search(
        r"version 4, .*: not timed: mine TILE=8 at 48 is wrong: reference: 2,304 of 2,304 elements "
        r"wrong; first C\[0, 0\]: expected [\d.]+, found [\d.]+",
        line,
    )

    # Fixed: compared with the last right version, whatever came between, also beside it.
    Path(os.fsdecode(os.fsencode(path.parent) + b"/caf\xe9")).touch()
    save(path, good)
    line = watch.line()
    won = re.search(
        r"version 5, .*: right; .* at 48 \(TILE=8\); ([\d.,]+) × faster than version 1", line
    )
    assert won, line
    assert float(won[1].replace(",", "")) > 2, line

    # And back: the baseline is the version before, not the first.
    save(path, slow)
    line = watch.line()
    lost = re.search(r"version 6, .*; ([\d.]+) × slower than version 5", line)
    assert lost, line
    assert float(lost[1]) > 2, line

    assert watch.interrupt() == (0, "")
    assert_gone(watch.process.pid)


def test_without_sizes_a_cpu_takes_the_smallest_that_fits_and_the_same_code_nothing(
    write_kernel: KernelWriter, watched: Callable[..., Watched]
) -> None:
    path = write_kernel()
    watch = watched(path, "--max-time", "0.01")
    assert re.search(r"version 1, .* at 256 \(TILE=8\)$", watch.line())
    begun = time.monotonic()
    save(path, path.read_text(encoding="utf-8") + "// a word\n")
    assert watch.line().endswith(": the same code as version 1: not timed again")
    assert time.monotonic() - begun < 2
    text = kernel_text().replace("// [launch]", '// [launch]\n// where = ["N > 256"]')
    assert "where" in text
    save(path, text)
    assert re.search(r"version 3, .* at 1000 \(TILE=8\)$", watch.line())
    assert watch.interrupt() == (0, "")


def test_lines_to_paste_follow_what_lacks(tmp_path: Path, watched: Callable[..., Watched]) -> None:
    path = tmp_path / "mine.cu"
    pointers = "const float *A, const float *B, float *C"
    path.write_text(f"__global__ void mine({pointers}, int M, int N, int K) {{ }}\n")
    watch = watched(path, *QUICK)
    assert watch.line().endswith(f"`matbench adopt {path}`, or write mine.toml:")
    assert watch.line() == "    [launch]"
    assert watch.line() == "    block = [16, 16]"
    assert watch.line().startswith("    grid = [")
    assert watch.interrupt() == (0, "")


def test_a_terminal_shows_one_screen(write_kernel: KernelWriter) -> None:
    path = write_kernel()
    good = path.read_text(encoding="utf-8")
    saves = [kernel_text(body=WRONG_BODY), good.replace("sum += ", "sum += 1.0f * ")]
    asked: list[int] = []

    def step(written: str) -> bool:
        """Saves again whenever it waits; after the last save, Ctrl-C."""
        count = written.count("Waiting for the next save")
        last = written[written.rfind("version ") :]
        if count <= len(asked) or "Waiting" not in last:
            return False
        asked.append(count)
        if not saves:
            return True
        save(path, saves.pop(0))
        return False

    session = on_terminal("watch", path, *QUICK, interrupt_when=step, width=80)
    text = "\n".join(session.lines)
    assert session.code == 0
    assert "Traceback" not in text
    assert "Not timed. Fix the file and save again." in text
    assert "`matbench check mine.cu` tells at which sizes it is wrong." in text
    assert re.search(r"first\s+C\[0,\s0\]: expected [\d.]+, found", text)
    final = text[text.rindex("mine.cu · version 3") :]
    assert re.search(r"^48 .*[\d.]+ .*[A-Z]{4,}", final, re.MULTILINE)
    assert re.search(r"^version 2, .*not timed", final, re.MULTILINE)
    assert re.search(r"^version 1, .*right", final, re.MULTILINE)
    assert max(map(len, session.lines)) <= 80


@pytest.mark.long
@pytest.mark.real
def test_a_save_in_the_middle_of_things_is_looked_at_next(write_kernel: KernelWriter) -> None:
    path = write_kernel()
    text = path.read_text(encoding="utf-8")
    many = ",".join(map(str, range(20, 60)))
    saved: list[bool] = []

    def step(written: str) -> bool:
        if "Checking mine TILE=8 at 2" in written and not saved:
            save(path, text.replace("sum +=", "summ +="))
            saved.append(True)
        return "version 2" in written and "Waiting" in written

    session = on_terminal("watch", path, "--sizes", many, interrupt_when=step)
    assert session.code == 0
    assert "version 2" in session.written
    assert "at 59" not in session.written
