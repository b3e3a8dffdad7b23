"""The versions of a kernel file that is watched from save to save."""

from __future__ import annotations

from dataclasses import dataclass, field

from matbench.model import Problem
from matbench.records.comparison import ComparisonRecord


@dataclass
class TimedVersion:
    """A version at one size: its fastest parameters, and its comparisons."""

    params: dict[str, int]
    median_ns: float
    comparisons: list[ComparisonRecord] = field(default_factory=list)


@dataclass
class SavedVersion:
    """One save at `saved` (HH:MM:SS); `wrong` says why it was not timed.

    `paste` may have lines of code that would fix it. One that differs only in comments and blanks
    from the last right version is `same_as` that, by its label, and not timed again.
    """

    number: int
    saved: str
    wrong: str = ""
    paste: tuple[str, ...] = ()
    same_as: str = ""
    standings: dict[Problem, TimedVersion] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"version {self.number}"
