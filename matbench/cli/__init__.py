"""The commands, one module each: they read options, call the other packages, print, and exit.

Must never compute anything, or be imported by another package; only this one prints or exits.
"""
# ruff: noqa: I001 - the help lists commands in the order of these imports

from matbench.cli.app import main
from matbench.cli import run, compare, report, kernels, machine
from matbench.features.new import command as new
from matbench.features.adopt import command as adopt
from matbench.features.watch import command as watch
from matbench.features.diff import command as diff
from matbench.features.tune import command as tune
from matbench.features.explain import command as explain
from matbench.features.timeline import command as blocks
from matbench.features.check import command as check
from matbench.features.grade import command as grade
from matbench.features.page import command as page
from matbench.features.plot import command as plot
from matbench.features.doctor import command as doctor  # fmt: skip

__all__ = [
    "adopt", "blocks", "check", "compare", "diff", "doctor", "explain", "grade",
    "kernels", "machine", "main", "new", "page", "plot", "report", "run", "tune", "watch",
]  # fmt: skip
