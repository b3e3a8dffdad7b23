"""The parameters that searches found, kept for `matbench run --tuned`.

Winners are lines of JSON in the user's state folder; lines are added, never changed. Lines that
this version cannot read are kept and ignored.
"""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import msgspec

from matbench import regular
from matbench.errors import UsageError
from matbench.model import DeviceInfo, Problem
from matbench.records import encoding
from matbench.records.appending import LockedFile
from matbench.records.provenance import state_folder
from matbench.records.tuning import Tuned

_WAIT_S = 10
_MOST_BYTES = 1 << 28
_HINT = "set MATBENCH_STATE_DIR to another folder"
_Key = tuple[str, str, str, str, Problem]


class Store:
    """Winners, one for each kernel source, device and size; inputs are ignored."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_folder() / "tuned.jsonl"

    def winners(self) -> list[Tuned]:
        """The latest of each, in order of time.

        An unfinished search replaces only another unfinished one.
        """
        try:
            with regular.opened(self.path) as file:  # a pipe could block for ever
                data = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be read: {error.strerror}; {_HINT}") from None
        latest: dict[_Key, Tuned] = {}
        for line in data.split(b"\n"):
            try:
                winner = msgspec.json.decode(line, type=Tuned)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            key = _key(winner)
            if winner.complete or key not in latest or not latest[key].complete:
                latest.pop(key, None)
                latest[key] = winner
        return list(latest.values())

    def require(self) -> None:
        """`UsageError` if winners cannot be stored here; call this before measuring."""
        self._append(None)

    def keep(self, winner: Tuned) -> bool:
        """Add a winner; false if its search is unfinished and an earlier one was complete."""
        known = {_key(known): known for known in self.winners()}.get(_key(winner))
        if known is not None and known.complete and not winner.complete:
            return False
        plain = msgspec.structs.replace(winner, problem=without_inputs(winner.problem))
        self._append(encoding.line(plain).encode())
        return True

    def nearest(self, sha256: str, device: DeviceInfo, problem: Problem) -> list[Tuned]:
        """Winners for this source on this device: of the same size first, then by similar M·N·K."""

        def distance(winner: Tuned) -> tuple[bool, float]:
            apart = math.log(_volume(winner.problem) / _volume(problem))
            return without_inputs(winner.problem) != without_inputs(problem), abs(apart)

        wanted = (sha256, device.backend, device.name)
        fitting = [w for w in self.winners() if (w.sha256, w.backend, w.device) == wanted]
        return sorted(fitting, key=distance)

    def _append(self, line: bytes | None) -> None:
        """Add one line; with None only find out whether that is possible."""
        try:
            opened = LockedFile(self.path, hint=_HINT, wait_s=_WAIT_S, own=True)
            with closing(opened) as file:
                size = file.size
                file.append((line or b"") + b"\n")
                if line is None:
                    file.truncate(size)
        except OSError as error:
            reason = f"the winner cannot be stored: {error.strerror}"
            raise UsageError(f"{self.path}: {reason}; {_HINT}") from None


def _key(winner: Tuned) -> _Key:
    size = without_inputs(winner.problem)
    return winner.sha256, winner.kernel, winner.backend, winner.device, size


def without_inputs(problem: Problem) -> Problem:
    """The problem with standard inputs: winners are not distinguished by their inputs."""
    return msgspec.structs.replace(problem, inputs="uniform", seed=0)


def _volume(problem: Problem) -> int:
    return problem.M * problem.N * problem.K
