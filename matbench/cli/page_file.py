"""The HTML page that commands write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matbench.cli.console import say

if TYPE_CHECKING:
    from matbench.records.environment import Environment
    from matbench.records.outcome import Outcome
    from matbench.records.reading import Finding


def require_page(path: Path, *, force: bool) -> None:
    """`UsageError` if no page can be written there; ask before anything is measured for it."""
    from matbench.show.page import document

    document.require(path, force=force)


def write_page(
    path: Path,
    outcomes: Sequence[Outcome],
    environments: Sequence[Environment],
    findings: Iterable[tuple[Finding, Sequence[Outcome]]] = (),
) -> None:
    """Write the page and say so."""
    from matbench.analysis import cards, repetitions
    from matbench.show.page import document

    told = cards.told_apart(repetitions.merged(outcomes), environments)
    document.write(path, document.page(*told, findings))
    say(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)", err=True)
