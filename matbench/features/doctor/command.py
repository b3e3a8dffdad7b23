"""`matbench doctor`: whether this machine can measure, what to do if it cannot, and the cache."""

from __future__ import annotations

import sys
from contextlib import suppress

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
@click.option(
    "--clear-cache", is_flag=True, help="Only remove cached references and compiled code."
)
def doctor(install: bool, clear_cache: bool) -> None:
    """Check what measuring needs on this machine, and how to fix it; show its devices.

    A problem keeps the NVIDIA GPU, or the CPU if there is none, from being measured: exit code 1. A
    note does not, but may change times or disable an option.
    """
    from matbench import backends
    from matbench.cache import Cache
    from matbench.features.doctor import machine
    from matbench.features.doctor import view as shown

    if clear_cache:
        cache = Cache()
        say(f"removed {cache.clear() / 1e6:,.1f} MB from {cache.folder}")
        return
    if install:
        from matbench.features.doctor import installing

        for step in installing.install():
            say(f"{step} …", err=True)
    findings = list(machine.findings())
    show_rich(shown.renderable(findings))
    for name in backends.NAMES:
        with suppress(Exception):  # a finding says why there are none
            for info in backends.devices(name):
                show_rich("", *shown.device(info))
    if any(finding.status == "problem" for finding in findings):
        sys.exit(1)
