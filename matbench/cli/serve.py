"""`matbench serve`: a judge for programs in any language, over standard input and output."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from matbench.cli import options, registry
from matbench.cli.app import main
from matbench.cli.console import say
from matbench.cli.selection import ContractOptions
from matbench.errors import UsageError
from matbench.kernelfile.contract import Contract
from matbench.records import encoding

if TYPE_CHECKING:
    from matbench.cli.judge import Judge

R = TypeVar("R")

#: A source of at most 1 MB, all of it escaped.
_MAX_LINE_BYTES = 8 * 1024**2


def _told(text: str) -> msgspec.Meta:
    """What programs that ask for the schema read of a field."""
    return msgspec.Meta(description=text)


class _Id(msgspec.Struct, frozen=True):
    id: int | str | None = None


class JudgeRequest(_Id, frozen=True, forbid_unknown_fields=True):
    """One line of input: the kernel of a file (`path`), or in a text (`source`).

    With a `baseline`, a name or path, the two are compared. The `id` comes back with the answer.
    """

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

    hot: bool = options.option("--hot", is_flag=True, help="Time launches back to back.")
    max_time: float = options.option(
        "--max-time",
        type=options.Seconds(),
        default=0.1,
        metavar="SECONDS",
        help="Longest sampling time of a case.",
    )

    def arguments(
        self, sizes: options.SizeOptions, contract: ContractOptions, device: options.DeviceOptions,
        deadlines: options.DeadlineOptions,
    ) -> dict[str, Any]:  # fmt: skip
        """Those of `Judge`."""
        asked = {"timeout": deadlines.timeout, "contract": contract.asked}
        return {**vars(sizes), **vars(device), **vars(self), **asked}


@dataclass(frozen=True)
class ProtocolOptions:
    """How requests come."""

    mcp: bool = options.option(
        "--mcp",
        needs=registry.MCP,
        is_flag=True,
        help="Speak the Model Context Protocol in place of JSON Lines: docs/agents.md.",
    )

    def __post_init__(self) -> None:
        if self.mcp and importlib.util.find_spec("mcp") is None:
            raise UsageError("--mcp needs the package mcp; pip install 'matbench-cuda[mcp]'")


@main.command()
@options.grouped
def serve(
    timing: JudgeOptions,
    sizes: options.SizeOptions,
    contract: ContractOptions,
    device: options.DeviceOptions,
    deadlines: options.DeadlineOptions,
    protocol: ProtocolOptions,
) -> None:
    """Judge kernels for another program: JSON Lines in and out.

    Each line of standard input is a request, each line of standard output its answer, in the same
    order, until the input ends. docs/judge.md has all fields.

    \b
    echo '{"id": 1, "path": "mine.cu", "sizes": "256"}' | matbench serve
    """
    from matbench.cli.judge import AHEAD, Judge

    with Judge(**timing.arguments(sizes, contract, device, deadlines)) as judge:
        if protocol.mcp:
            registry.load(registry.MCP).serve(JudgeRequest, partial(_answer, judge), _read)
            return
        lines: Queue[bytes] = Queue(AHEAD)
        _read(lines.put, _MAX_LINE_BYTES + 1)
        ahead = deque[bytes]()
        while line := ahead.popleft() if ahead else lines.get():
            while len(ahead) < AHEAD and not lines.empty():
                ahead.append(lines.get())
                with suppress(UsageError):  # its own answer says so
                    request = _decoded(ahead[-1], JudgeRequest)
                    judge.compile_ahead(request.candidate, **request.options)
            say(encoding.line(_answer(judge, line)))


def _answer(judge: Judge, line: bytes) -> dict[str, Any]:
    """The answer to a request, or the `error` in it."""
    try:
        request = _decoded(line, JudgeRequest)
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
        answer = {"id": None, "error": str(error)}
        with suppress(UsageError):  # the rest of it may be wrong
            answer["id"] = _decoded(line, _Id).id
        return answer


def _decoded(line: bytes, kind: type[R]) -> R:
    """A request, or one field of it; `UsageError` says why that cannot be read."""
    if len(line) > _MAX_LINE_BYTES:
        raise UsageError(f"a request is longer than {_MAX_LINE_BYTES:,} bytes")
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"not a request: {' '.join(str(error).split()):.200}") from None


def _read(put: Callable[[bytes], Any], most: int = -1) -> None:
    """From now on, `put` gets each line of the input, or so many bytes of one that is longer, and
    at the end an empty one. It is called by a thread that does not delay the end."""
    stream = os.fdopen(os.dup(sys.stdin.fileno()), "rb")  # at its end, Python waits for its own

    def read() -> None:
        try:
            while line := stream.readline(most):
                rest = line
                while len(rest) == most and not rest.endswith(b"\n"):
                    rest = stream.readline(most)
                if line.strip():
                    put(line)
        finally:
            put(b"")

    threading.Thread(target=read, daemon=True).start()
