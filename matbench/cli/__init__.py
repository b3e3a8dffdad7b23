"""The commands, one module each: they read options, call the other packages, print, and exit.

Must never compute anything, or be imported by another package; only this one prints or exits.
"""
# ruff: noqa: I001 - the help lists commands in the order of these imports

from matbench.cli.app import main
from matbench.cli import (
    run, new, adopt, watch, compare, diff, tune, explain, blocks, check, grade, report,
    page, plot, kernels, machine, doctor,
)  # fmt: skip

__all__ = [
    "adopt", "blocks", "check", "compare", "diff", "doctor", "explain", "grade",
    "kernels", "machine", "main", "new", "page", "plot", "report", "run", "tune", "watch",
]  # fmt: skip
