"""Records on disk: versioned JSON Lines with their provenance; written, read and resumed.

A file is a line of environment followed by one line per outcome, and again for every run that was
added to it. Outcomes are appended and flushed as they are made, so that whatever ends a run leaves
a file that can be read and resumed. What is not known is null, never NaN. An array of the same
objects, as `--format json` prints it, can be read, but not added to.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import filelock
import msgspec
import platformdirs

from matbench import __version__, workloads
from matbench.errors import MatbenchError, UsageError
from matbench.model import Case, DeviceInfo, Environment, Outcome, Problem

#: Raised when a field is renamed or changes its meaning; a new field with a default needs none.
SCHEMA = 1
#: From each older schema to the next: what an object of that schema becomes.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

MAX_FILE_BYTES = 256 * 1024**2
MAX_LINE_BYTES = 16 * 1024**2
_MAX_SIZE = 2**63
_PACKAGES = (
    "numpy", "scipy", "pycuda", "cuda-bindings", "nvmath-python", "nvidia-ml-py", "pyopencl",
    "intel-opencl-rt", "intel-cmplr-lib-rt", "pocl", "pocl-binary-distribution", "msgspec",
    "pebble",
)  # fmt: skip
_FIRST_BYTES = b'{"type":"environment",'

Mode = Literal["new", "append", "force", "resume"]
Settings = Mapping[str, str | int | float | bool | None]


# Provenance


def environment(
    argv: Iterable[str], devices: Iterable[DeviceInfo], settings: Settings
) -> Environment:
    """Where and how this run is made: now, here, with what is installed."""
    return Environment(
        schema=SCHEMA,
        argv=tuple(argv),
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        host=platform.node(),
        os=platform.platform(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=_installed(),
        devices=tuple(devices),
        project_revision=_git_revision(),
        settings=dict(settings),
    )


def _installed() -> dict[str, str]:
    found = {"matbench-cuda": __version__}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name) or "unknown"
    return found


def _git_revision() -> str | None:
    """The commit of the project in the current folder, `-dirty` where it was modified."""
    git = shutil.which("git")
    if git is None:
        return None
    # A folder's own configuration must not make git run a program or touch the index.
    command = [git, "-c", "core.fsmonitor=false", "describe", "--always", "--dirty"]
    command += ["--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip() or None if not done.returncode else None


def state_folder() -> Path:
    """`MATBENCH_STATE_DIR`, or the platform's folder for this user's state."""
    return Path(os.environ.get("MATBENCH_STATE_DIR") or platformdirs.user_state_dir("matbench"))


def last_run_path() -> Path:
    """The file of the last run."""
    return state_folder() / "last-run.jsonl"


# Encoding


def finite(outcome: Outcome) -> Outcome:
    """The outcome as it is recorded: a number that is not finite becomes unknown, with a note."""
    changes: dict[str, Any] = {}
    for name in Outcome.__struct_fields__:
        value = getattr(outcome, name)
        if isinstance(value, float) and not math.isfinite(value):
            changes[name] = None
        elif name in ("samples_ns", "interval_ns") and not all(map(math.isfinite, value or ())):
            kept = tuple(sample for sample in value if math.isfinite(sample))
            changes[name] = kept if name == "samples_ns" else None
    if not changes:
        return outcome
    told = ", ".join(f"{name} ({_told(getattr(outcome, name))})" for name in changes)
    notes = (*outcome.notes, f"not finite, so recorded as unknown: {told}")
    return msgspec.structs.replace(outcome, **changes, notes=notes)


def _told(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(sorted({str(float(v)) for v in value if not math.isfinite(v)}))
    return str(float(value))


def _encode(record: msgspec.Struct) -> str:
    """One line of JSON, without its end."""
    known = finite(record) if isinstance(record, Outcome) else record
    plain = _without_nan(msgspec.to_builtins(known, enc_hook=_number))
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # File names that are not UTF-8 reach argv and messages as lone surrogates.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


#: What JSON may hold as it is, but ends lines for some readers or commands some terminals.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list | tuple) else value


def _number(value: Any) -> int | float:
    """NumPy's scalars as Python's."""
    number = value.item() if hasattr(value, "item") else None
    if not isinstance(number, int | float):
        raise TypeError(f"cannot record a {type(value).__name__}")
    return number


def array(records: Iterable[msgspec.Struct]) -> str:
    """Records as one JSON array, an object a line."""
    return "[\n" + ",\n".join(map(_encode, records)) + "\n]"


def to_json(environments: Iterable[Environment], outcomes: Iterable[Outcome]) -> str:
    """The objects of a record file as one JSON array."""
    return array([*environments, *outcomes])


# Reading


class _Contents(NamedTuple):
    """What a file holds; `whole_bytes` end with its last whole record."""

    environments: list[Environment]
    outcomes: list[Outcome]
    whole_bytes: int
    ends_line: bool
    note: str | None
    is_array: bool


class _Head(msgspec.Struct, frozen=True):
    type: str
    schema: int | None = None


_HEAD = msgspec.json.Decoder(_Head)
_RECORD = msgspec.json.Decoder(Environment | Outcome)


def read(path: Path, notes: list[str] | None = None) -> tuple[list[Environment], list[Outcome]]:
    """The environments and outcomes of a file, in its order.

    A torn last line is left out, and `notes` says so. `UsageError` names the file and the line
    that is no record. Nothing in the file is executed, and no path in it is opened.
    """
    contents = _scan(path)
    if contents.note and notes is not None:
        notes.append(contents.note)
    return contents.environments, contents.outcomes


def _scan(path: Path) -> _Contents:
    reader = _Reader(path)
    end, line, note = 0, b"\n", None
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                reader.number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise reader.refuse(f"longer than {MAX_LINE_BYTES:,} bytes; not a record")
                if end + len(line) > MAX_FILE_BYTES:
                    raise UsageError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes; split it")
                try:
                    reader.take(line)
                except _TornError as error:
                    if line.endswith(b"\n") or not reader.may_be_torn(line):
                        raise reader.refuse(f"{error}; mend or remove the line") from None
                    note = f"{path}:{reader.number}: not written to its end, so left out"
                    return reader.contents(end, True, note)
                end += len(line)
                last = line
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    ends_line = not end or last.endswith(b"\n")
    return reader.contents(end, ends_line, None)


class _TornError(Exception):
    """A line that is no JSON, as the end of a write that was interrupted is not."""


class _Reader:
    """Takes the lines of one file; each environment gives the schema of the lines after it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.is_array = False
        self.schema: int | None = None
        self.environments: list[Environment] = []
        self.outcomes: list[Outcome] = []

    def contents(self, whole_bytes: int, ends_line: bool, note: str | None) -> _Contents:
        found = self.environments, self.outcomes
        return _Contents(*found, whole_bytes, ends_line, note, self.is_array)

    def refuse(self, reason: str) -> UsageError:
        return UsageError(f"{self.path}:{self.number}: {reason}")

    def may_be_torn(self, line: bytes) -> bool:
        """Whether matbench can have begun this line: the first of a file tells by its start."""
        start = line[: len(_FIRST_BYTES)]
        return self.schema is not None or start == _FIRST_BYTES[: len(start)]

    def take(self, line: bytes) -> None:
        if self.number == 1 and line.strip() == b"[":
            self.is_array = True
            return
        if not line.strip() or (self.is_array and line.strip() == b"]"):
            return
        if self.is_array:
            line = line.rstrip().removesuffix(b",")
        try:
            self._take(line)
        except (msgspec.ValidationError, _InvalidError) as error:
            reason = " ".join(str(error).split())
            raise self.refuse(f"not a record: {reason!s:.200}; mend or remove the line") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _TornError(f"not a record: {error!s:.200}") from None
        except RecursionError:
            raise self.refuse("not a record: nested too deeply; remove the line") from None

    def _take(self, line: bytes) -> None:
        head = _HEAD.decode(line)
        if head.type == "environment":
            self.schema = self._known(head.schema)
        if self.schema is None:
            raise _InvalidError("no line of environment comes before it")
        if self.schema == SCHEMA:
            record = _RECORD.decode(line)
        else:
            plain = msgspec.json.decode(line, type=dict[str, Any])
            for schema in range(self.schema, SCHEMA):
                try:
                    plain = UPGRADES[schema](plain)
                except (LookupError, TypeError, ValueError, AttributeError):
                    raise _InvalidError(f"no outcome of schema {schema}") from None
            record = msgspec.convert(plain, Environment | Outcome)
        if isinstance(record, Environment):
            self.environments.append(record)
        else:
            self.outcomes.append(_checked(record))

    def _known(self, schema: int | None) -> int:
        if schema is not None and schema > SCHEMA:
            raise self.refuse(
                f"written by a newer matbench (schema {schema}, this one reads up to {SCHEMA}); "
                "upgrade matbench-cuda"
            )
        if schema is None or schema not in (*UPGRADES, SCHEMA):
            raise _InvalidError(f"there is no schema {schema}")
        return schema


class _InvalidError(Exception):
    """JSON that says what no record can say."""


def _checked(outcome: Outcome) -> Outcome:
    """What types cannot say: sizes whose product has no end would stop whoever computes with it."""
    problem = outcome.problem
    for name in ("M", "N", "K"):
        if not 1 <= getattr(problem, name) < _MAX_SIZE:
            raise _InvalidError(f"{name} is no size of a matrix - at `$.problem`")
    if problem.workload not in workloads.WORKLOADS:
        raise _InvalidError(f"workload {problem.workload!r:.60} is unknown - at `$.problem`")
    return outcome


# Resuming


class CaseKey(NamedTuple):
    """What makes two cases the same: another source, size, input, seed or device is another."""

    kernel: str
    sha256: str
    params: frozenset[tuple[str, int]]
    problem: Problem
    backend: str
    device: str


def case_key(case: Case, device: DeviceInfo) -> CaseKey:
    """The key of a case on the device that it will run on."""
    kernel, params = case.kernel, frozenset(case.params.items())
    return CaseKey(kernel.name, kernel.sha256, params, case.problem, device.backend, device.name)


def outcome_key(outcome: Outcome) -> CaseKey:
    """The key of the case that an outcome came from."""
    return CaseKey(
        outcome.kernel,
        outcome.sha256,
        frozenset(outcome.params.items()),
        outcome.problem,
        outcome.backend,
        outcome.device,
    )


def finished(outcomes: Iterable[Outcome]) -> dict[CaseKey, Outcome]:
    """The cases that a resumed run need not run again.

    A failed case is none of them: what failed it (a deadline, a device lost, memory that another
    program held, a killed worker) may be over.
    """
    return {outcome_key(found): found for found in outcomes if found.status != "failed"}


def without_retried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Outcomes without the failures that were tried anew; the later try says that in a note."""
    kept: list[Outcome] = []
    later: dict[CaseKey, int] = {}
    for outcome in reversed(outcomes):
        key = outcome_key(outcome)
        if outcome.status == "failed" and key in later:
            retry = kept[later[key]]
            note = f"an earlier try failed: {outcome.reason}"
            kept[later[key]] = msgspec.structs.replace(retry, notes=(*retry.notes, note))
            continue
        later[key] = len(kept)
        kept.append(outcome)
    return kept[::-1]


# Writing


class RecordWriter:
    """Appends outcomes to one file, each flushed to disk as it is made.

    `new` refuses a file that holds something, `append` and `resume` add to it (a file that is not
    there is begun), and `force` replaces it once the first outcome is written. Entering raises a
    `UsageError` when the file cannot be written or another run holds it. `environments` and
    `outcomes` are what an appended or resumed file held, `notes` what was mended in it.

    With `best_effort` no error leaves this class: `error` keeps the first, and recording ends.
    """

    def __init__(
        self,
        path: Path,
        environment: Environment,
        mode: Mode = "new",
        *,
        best_effort: bool = False,
    ) -> None:
        self.path = path
        self.environment = environment
        self.mode = mode
        self.best_effort = best_effort
        self.environments: list[Environment] = []
        self.outcomes: list[Outcome] = []
        self.notes: list[str] = []
        self.written = 0
        self.error: MatbenchError | None = None
        self._target = path
        self._regular = True
        self._created = False
        self._file: FileIO | None = None
        self._lock: filelock.BaseFileLock | None = None

    def __enter__(self) -> RecordWriter:
        try:
            self._open()
        except BaseException as error:
            self._close()
            if not self.best_effort or not isinstance(error, MatbenchError):
                raise
            self.error = error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def write(self, outcome: Outcome) -> None:
        """Append one outcome and flush it; a `MatbenchError` when the disk refuses it."""
        if self.error is not None:
            return
        lines = [] if self.written else [_encode(self.environment)]
        data = "".join(f"{line}\n" for line in (*lines, _encode(outcome))).encode()
        try:
            if self.mode == "force" and not self.written:
                self._replace(data)
            else:
                self._append(data)
        except OSError as error:
            kept = (
                f"it keeps the {self.written} outcomes of this run before; mend that and go on "
                f"with --resume {self.path}"
            )
            hint = kept if self.written and self._regular else "mend that, or name another file"
            refused = MatbenchError(f"{self.path}: cannot be written: {error.strerror}; {hint}")
            if not self.best_effort:
                raise refused from None
            self.error = refused
            return
        self.written += 1

    def _open(self) -> None:
        try:
            if self.best_effort:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.is_dir():
                raise UsageError(f"{self.path}: is a folder; name a file in it")
            exists = self.path.exists()
            self._regular = self.path.is_file() or not exists
            if not self._regular:  # a pipe or a terminal: nothing in it to keep
                self.mode = "append"
                self._file = FileIO(self.path, "a")
                return
            self._target = self.path.resolve()
            if not self._target.parent.is_dir():
                folder = self._target.parent
                raise UsageError(f"{self.path}: no folder {folder}; make it, or name another file")
            self._acquire()
            # Opened even where it will be replaced: a file that is protected stays.
            self._created = not self._target.exists()
            self._file = FileIO(self._target, "a")
            size = self._target.stat().st_size
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"{self.path}: cannot be written: {reason}; name another file"
            ) from None
        if self.mode == "new" and size:
            raise UsageError(
                f"{self.path}: exists; add to it with --append, replace it with --force, "
                "or go on with it by --resume"
            )
        if self.mode in ("append", "resume") and size:
            self._take_up()

    def _acquire(self) -> None:
        self._lock = filelock.FileLock(self._target.with_name(f".{self._target.name}.lock"))
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            # A lock that cannot be made times out like one that is held.
            lock, self._lock = Path(self._lock.lock_file), None
            if not lock.exists():
                raise UsageError(
                    f"{self.path}: cannot be written: no file can be made in "
                    f"{self._target.parent}; name another file"
                ) from None
            raise UsageError(
                f"{self.path}: another run is writing to it; wait for its end or name another file"
            ) from None

    def _take_up(self) -> None:
        """Read what the file holds, and mend its end."""
        contents = _scan(self.path)
        if contents.is_array:
            raise UsageError(f"{self.path}: a JSON array cannot be added to; name another file")
        self.environments, self.outcomes = contents.environments, contents.outcomes
        assert self._file is not None
        try:
            if contents.note:
                self._file.truncate(contents.whole_bytes)
                self.notes.append(contents.note)
            if not contents.ends_line:
                self._file.write(b"\n")
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be mended: {error.strerror}") from None

    def _append(self, data: bytes) -> None:
        """All of `data` or nothing, at the file's end."""
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            if self._regular:
                os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(size)
            raise

    def _replace(self, data: bytes) -> None:
        """Begin a file beside the old one, and put it in its place when it holds `data`."""
        assert self._file is not None
        handle, name = tempfile.mkstemp(dir=self._target.parent, prefix=f".{self._target.name}.")
        old, self._file = self._file, FileIO(handle, "w")
        try:
            shutil.copymode(self._target, name)
            self._append(data)
            Path(name).replace(self._target)
        except BaseException:
            self._file.close()
            self._file = old
            Path(name).unlink(missing_ok=True)
            raise
        old.close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._created:
            # By what it holds, not by what was counted: Ctrl-C may have come in between.
            with suppress(OSError):
                if not self._target.stat().st_size:
                    self._target.unlink()
        if self._lock is not None:
            # While it is still held: another run that waits for it sees that it is gone.
            with suppress(OSError):
                if sys.platform != "win32":
                    Path(self._lock.lock_file).unlink()
            self._lock.release()
            self._lock = None
