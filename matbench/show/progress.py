"""What the live display of a command says in lines."""

from __future__ import annotations

from rich.text import Text

from matbench.records.outcome import Outcome
from matbench.show import outcomes, safe


def failure(outcome: Outcome) -> Text:
    """A case that is wrong or failed, with the first line of its reason."""
    reason, _, _ = (outcome.reason or "").partition("\n")
    about = line(f"{outcome.case.label}: {reason}")
    return Text.assemble((outcome.status, outcomes.STYLES[outcome.status]), " ", about)


def line(text: str) -> Text:
    """A line of the terminal, cut where it ends."""
    return Text(safe.flat(text), no_wrap=True, overflow="ellipsis")
