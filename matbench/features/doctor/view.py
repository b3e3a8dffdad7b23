"""What `matbench doctor` found: one line each, with the fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from matbench.features.doctor.finding import DoctorFinding

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


def renderable(findings: Iterable[DoctorFinding]) -> RenderableType:
    """A table of names, statuses, and what was seen."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in findings:
        seen = Text(finding.seen)
        if finding.fix:
            seen.append("; fix: ").append(finding.fix, style="bold")
        table.add_row(finding.name, Text(finding.status, style=_STYLES[finding.status]), seen)
    return table
