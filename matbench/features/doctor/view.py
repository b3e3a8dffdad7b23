"""What `matbench doctor` found: one line each, with the fix; and the properties of devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from matbench.features.doctor.finding import DoctorFinding
from matbench.model import DeviceInfo

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


def device(info: DeviceInfo) -> tuple[RenderableType, RenderableType]:
    """The name of a device, and a table of its properties."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    rows: dict[str, Any] = {
        "driver": info.driver,
        "toolkit or runtime": info.toolkit,
        **info.properties,
    }
    for label, value in rows.items():
        shown = f"{value:,}" if isinstance(value, int) else value or "unknown"
        table.add_row(Text(f"  {label}"), Text(str(shown)))
    return Text.assemble((info.label, "bold"), f" ({info.kind.upper()})"), table
