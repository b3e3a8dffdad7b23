"""`matbench doctor`: whether this machine can measure, and what to do if it cannot."""

from __future__ import annotations

import sys

import click

from matbench.cli.app import main
from matbench.cli.console import say, show_rich


@main.command()
@click.option(
    "--install",
    is_flag=True,
    help="First install what CUDA lacks into this Python environment: PyCUDA and, without a CUDA "
    "toolkit, nvcc and headers of the driver's release.",
)
def doctor(install: bool) -> None:
    """Check what measuring needs on this machine, and how to fix it.

    A problem keeps the NVIDIA GPU, or the CPU if there is none, from being measured: exit code 1. A
    note does not, but may change times or disable an option.
    """
    from matbench.features.doctor import machine
    from matbench.features.doctor import view as shown

    if install:
        from matbench.features.doctor import installing

        for step in installing.install():
            say(f"{step} …", err=True)
    findings = list(machine.findings())
    show_rich(shown.renderable(findings))
    if any(finding.status == "problem" for finding in findings):
        sys.exit(1)
