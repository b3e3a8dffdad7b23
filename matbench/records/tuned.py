"""The parameters that searches found, kept for `matbench run --tuned`.

Winners are lines of JSON in the user's state folder; lines are added, never changed. Lines that
this version cannot read are kept and ignored.
"""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path

import msgspec

from matbench.errors import UsageError
from matbench.model import DeviceInfo, Problem
from matbench.records import encoding
from matbench.records.appending import LockedFile
from matbench.records.provenance import state_folder
from matbench.records.tuning import Tuned

_WAIT_S = 10
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
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be read: {error.strerror}; {_HINT}") from None
        found: dict[_Key, Tuned] = {}
        for line in data.split(b"\n"):
            try:
                winner = msgspec.json.decode(line, type=Tuned)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            key = _key(winner)
            if winner.complete or key not in found or not found[key].complete:
                found.pop(key, None)
                found[key] = winner
        return list(found.values())

    def require(self) -> None:
        """`UsageError` if winners cannot be stored here; call this before measuring."""
        self._opened().close()

    def keep(self, winner: Tuned) -> bool:
        """Add a winner; false if its search is unfinished and an earlier one was complete."""
        plain = msgspec.structs.replace(winner, problem=without_inputs(winner.problem))
        try:
            with closing(self._opened()) as file:
                file.append(f"{encoding.line(plain)}\n".encode())
        except OSError as error:
            reason = f"the winner cannot be stored: {error.strerror}"
            raise UsageError(f"{self.path}: {reason}; {_HINT}") from None
        return plain in self.winners()

    def nearest(self, sha256: str, device: DeviceInfo, problem: Problem) -> list[Tuned]:
        """Winners for this source on this device: of the same size first, then by similar M·N·K."""

        def distance(winner: Tuned) -> tuple[bool, float]:
            apart = math.log(_volume(winner.problem) / _volume(problem))
            return without_inputs(winner.problem) != without_inputs(problem), abs(apart)

        wanted = (sha256, device.backend, device.name)
        fitting = [w for w in self.winners() if (w.sha256, w.backend, w.device) == wanted]
        return sorted(fitting, key=distance)

    def _opened(self) -> LockedFile:
        return LockedFile(self.path, hint=_HINT, wait_s=_WAIT_S, own=True)


def _key(winner: Tuned) -> _Key:
    size = without_inputs(winner.problem)
    return winner.sha256, winner.kernel, winner.backend, winner.device, size


def without_inputs(problem: Problem) -> Problem:
    """The problem with standard inputs: winners are not distinguished by their inputs."""
    return msgspec.structs.replace(problem, inputs="uniform", seed=0)


def _volume(problem: Problem) -> int:
    return problem.M * problem.N * problem.K
