"""`matbench doctor`: whether this machine can measure, what to do if it cannot, and the cache."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from matbench.cli.app import main
from matbench.cli.console import say, show_rich

_STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@main.command()
@click.option(
    "--install",
    is_flag=True,
    help="First install what CUDA lacks into this Python environment: PyCUDA and, without a CUDA "
    "toolkit, nvcc and headers of the driver's release.",
)
@click.option(
    "--clear-cache", is_flag=True, help="Only remove cached references and compiled code."
)
def doctor(install: bool, clear_cache: bool) -> None:
    """Check what measuring needs on this machine, and how to fix it; show its devices.

    A problem keeps the NVIDIA GPU, or the CPU if there is none, from being measured: exit code 1. A
    note does not, but may change times or disable an option.
    """
    from rich.table import Table
    from rich.text import Text

    from matbench import backends
    from matbench.cache import Cache
    from matbench.features.doctor import installing, machine

    if clear_cache:
        cache = Cache()
        say(f"removed {cache.clear() / 1e6:,.1f} MB from {cache.folder}")
        return
    if install:
        for step in installing.install():
            say(f"{step} …", err=True)
    findings, table = list(machine.findings()), Table.grid(padding=(0, 2))
    for finding in findings:
        seen = Text(finding.seen)
        if finding.fix:
            seen.append("; fix: ").append(finding.fix, style="bold")
        table.add_row(finding.name, Text(finding.status, style=_STYLES[finding.status]), seen)
    show_rich(table)
    for name in backends.NAMES:
        with suppress(Exception):  # a finding says why there are none
            for info in backends.devices(name):
                table = Table.grid(padding=(0, 2))
                about = {"driver": info.driver, "toolkit or runtime": info.toolkit}
                for label, value in {**about, **info.properties}.items():
                    text = f"{value:,}" if isinstance(value, int) else str(value or "unknown")
                    table.add_row(Text(f"  {label}"), Text(text))
                title = Text.assemble((info.label, "bold"), f" ({info.kind.upper()})")
                show_rich("", title, table)
    if any(finding.status == "problem" for finding in findings):
        sys.exit(1)
