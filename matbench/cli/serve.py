"""`matbench serve`: a judge for programs in any language, over standard input and output."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

import msgspec

from matbench.cli.app import main
from matbench.cli.console import say
from matbench.cli.options import (
    DeadlineOptions,
    DeviceOptions,
    Seconds,
    SizeOptions,
    grouped,
    option,
)
from matbench.cli.registry import FeatureOptions
from matbench.cli.selection import ContractOptions
from matbench.errors import UsageError
from matbench.kernelfile.contract import Contract
from matbench.records import encoding

if TYPE_CHECKING:
    from matbench.cli.judge import Judge

#: A source of at most 1 MB, all of it escaped.
_MAX_LINE_BYTES = 8 * 1024**2


def _told(text: str) -> msgspec.Meta:
    """What programs that ask for the schema read of a field."""
    return msgspec.Meta(description=text)


class _Id(msgspec.Struct, frozen=True):
    id: int | str | None = None


class JudgeRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of input: the kernel of a file (`path`), or in a text (`source`).

    With a `baseline`, a name or path, the two are compared. The `id` comes back with the answer.
    """

    id: int | str | None = None
    path: Annotated[str | None, _told("mine.cu, gemm.py::multiply, or a kernel's name")] = None
    source: Annotated[str | None, _told("the text of a file, in CUDA C or Python")] = None
    sizes: Annotated[str | None, _told("such as 256,17,65x31x129 (M×N×K)")] = None
    entry: Annotated[str | None, _told("the function to call, if there are several")] = None
    front_matter: Annotated[dict[str, Any] | None, _told("keys in place of the file's")] = None
    contract: Annotated[Contract | None, _told("what it must compute; default: C = A·B")] = None
    baseline: Annotated[str | None, _told("a path or name to time it against, in turns")] = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.source is None):
            raise ValueError("give either `path` or `source`")
        if self.baseline is not None and (self.entry or self.front_matter or self.contract):
            more = "`entry`, `front_matter` or `contract`"
            raise ValueError(f"`baseline` cannot be combined with {more}")

    @property
    def candidate(self) -> str:
        """What `Judge` takes: a text has several lines."""
        return f"{self.source}\n" if self.path is None else self.path

    @property
    def options(self) -> dict[str, Any]:
        names = ("sizes", "entry", "front_matter", "contract")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class JudgeOptions:
    """How a judge times."""

    TITLE: ClassVar = None

    hot: bool = option("--hot", is_flag=True, help="Time launches back to back.")
    max_time: float = option(
        "--max-time",
        type=Seconds(),
        default=0.1,
        show_default=True,
        metavar="SECONDS",
        help="Longest sampling time of a case.",
    )

    def judge(
        self, sizes: SizeOptions, contract: ContractOptions, device: DeviceOptions,
        deadlines: DeadlineOptions,
    ) -> Judge:  # fmt: skip
        from matbench.cli.judge import Judge

        return Judge(
            **vars(sizes), **vars(device), **vars(self), timeout=deadlines.timeout,
            contract=contract.asked,
        )  # fmt: skip


@main.command()
@grouped
def serve(
    timing: JudgeOptions,
    sizes: SizeOptions,
    contract: ContractOptions,
    device: DeviceOptions,
    deadlines: DeadlineOptions,
    features: FeatureOptions,
) -> None:
    """Judge kernels for another program: JSON Lines in and out.

    Each line of standard input is a request, each line of standard output its answer, in the same
    order, until the input ends. docs/judge.md has all fields.

    \b
    echo '{"id": 1, "path": "mine.cu", "sizes": "256"}' | matbench serve
    """
    from matbench.cli.judge import AHEAD

    with timing.judge(sizes, contract, device, deadlines) as judge:
        if "mcp" in features and features["mcp"].mcp:
            features["mcp"].serve(JudgeRequest, partial(_answer, judge))
            return
        lines: Queue[bytes] = Queue(AHEAD)
        stream = os.fdopen(os.dup(sys.stdin.fileno()), "rb")  # at its end, Python waits for its own
        threading.Thread(target=_read, args=(stream, lines), daemon=True).start()
        ahead = deque[bytes]()
        while line := ahead.popleft() if ahead else lines.get():
            while len(ahead) < AHEAD and not lines.empty():
                ahead.append(lines.get())
                _compile_ahead(judge, ahead[-1])
            say(encoding.line(_answer(judge, line)))


def _answer(judge: Judge, line: bytes) -> dict[str, Any]:
    """The answer to a request, or the `error` in it."""
    try:
        request = _request(line)
        answer: dict[str, Any] = {"id": request.id}
        if request.baseline is not None:
            found = judge.compare(request.baseline, request.candidate, sizes=request.sizes)
            answer |= {"verdict": found.verdict, "reason": found.reason, "ratios": found.ratios}
            return answer | {"comparisons": found.records}
        verdict = judge.run(request.candidate, **request.options)
        answer |= {"kernel": verdict.kernel, "status": verdict.status, "reason": verdict.reason}
        answer |= {"median_ns": verdict.median_ns, "adoption": verdict.adoption}
        return answer | {"cases": verdict.cases}
    except UsageError as error:
        return {"id": _id_of(line), "error": str(error)}


def _id_of(line: bytes) -> int | str | None:
    """The `id` of a request, even if the rest of it is wrong."""
    try:
        return msgspec.json.decode(line[:_MAX_LINE_BYTES], type=_Id).id
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _request(line: bytes) -> JudgeRequest:
    if len(line) > _MAX_LINE_BYTES:
        raise UsageError(f"a request is longer than {_MAX_LINE_BYTES:,} bytes")
    try:
        return msgspec.json.decode(line, type=JudgeRequest)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"not a request: {' '.join(str(error).split()):.200}") from None


def _compile_ahead(judge: Judge, line: bytes) -> None:
    with suppress(UsageError):  # its own answer says so
        request = _request(line)
        judge.compile_ahead(request.candidate, **request.options)


def _read(stream: BinaryIO, lines: Queue[bytes]) -> None:
    """Wait for room in the queue for each line, cut if it is too long; an empty one ends it."""
    try:
        while line := stream.readline(_MAX_LINE_BYTES + 1):
            rest = line
            while len(rest) > _MAX_LINE_BYTES and not rest.endswith(b"\n"):
                rest = stream.readline(_MAX_LINE_BYTES + 1)
            if line.strip():
                lines.put(line)
    finally:
        lines.put(b"")
