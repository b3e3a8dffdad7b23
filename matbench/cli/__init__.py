"""The commands: they read options, wire the other packages together, and print.

One module a command; only this package prints or exits, and it computes nothing.
"""
# ruff: noqa: I001 - the help lists commands in the order of these imports

from matbench.cli.app import main
from matbench.cli import (
    run, new, watch, compare, diff, tune, explain, blocks, check, report, plot, kernels, machine
)  # fmt: skip

__all__ = [
    "blocks", "check", "compare", "diff", "explain", "kernels", "machine", "main", "new", "plot",
    "report", "run", "tune", "watch",
]  # fmt: skip
