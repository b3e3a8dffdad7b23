"""The commands: they read options, wire the other rooms together, and print.

One module a command; only this room prints or exits.
"""
# ruff: noqa: I001 - the help lists commands in the order of these imports

from matbench.cli.app import main
from matbench.cli import (
    run, new, compare, tune, explain, blocks, check, report, plot, kernels, machine
)  # fmt: skip

__all__ = [
    "blocks", "check", "compare", "explain", "kernels", "machine", "main", "new", "plot", "report",
    "run", "tune",
]  # fmt: skip
