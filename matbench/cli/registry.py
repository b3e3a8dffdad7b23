"""What the core offers beyond itself: the only module of the core that names modules of features.

Everything is named, and imported when it is used. A feature whose folder is missing is left out:
its command, its options of other commands, and what pages and reports show of its records.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from matbench.errors import UsageError

_FEATURES = Path(__file__).parents[1] / "features"


class Listed(NamedTuple):
    """A command: its module, and the first sentence of its help."""

    module: str
    summary: str


#: All commands, in the order of the help.
COMMANDS = {
    "run": Listed("cli.run", "Check and time KERNELS over sizes and parameters."),
    "new": Listed("features.new.command", "Create a kernel file: a copy that says what to change."),
    "adopt": Listed(
        "features.adopt.command", "Find out how to launch a file's kernels, and save that."
    ),
    "watch": Listed(
        "features.watch.command", "Check and time FILE whenever it is saved, until Ctrl-C."
    ),
    "compare": Listed(
        "cli.compare", "Compare two kernels: is CANDIDATE FASTER, SLOWER or the SAME?"
    ),
    "diff": Listed(
        "features.diff.command", "Compare two record files: is NEW FASTER, SLOWER or the SAME?"
    ),
    "history": Listed("features.history.command", "Find the commits that made a kernel slower."),
    "serve": Listed("cli.serve", "Judge kernels for another program: JSON Lines in and out."),
    "tune": Listed("features.tune.command", "Find the fastest values of KERNEL's constants."),
    "explain": Listed("features.explain.command", "Explain what limits a kernel's speed."),
    "blocks": Listed(
        "features.timeline.command", "Time each block of one launch: how long, and where it ran."
    ),
    "check": Listed(
        "features.check.command", "Probe a kernel at awkward shapes: which does it get right?"
    ),
    "grade": Listed(
        "features.grade.command", "Describe the arithmetic of kernels: errors, range, order."
    ),
    "report": Listed("cli.report", "Print the table of one or more record files."),
    "page": Listed(
        "features.page.command", "Write one or more record files as an interactive HTML page."
    ),
    "plot": Listed(
        "features.plot.command", "Plot speed and error over n, from one or more record files."
    ),
    "list": Listed("cli.kernels", "List the kernels and the constants they sweep."),
    "show": Listed("cli.kernels", "Show a kernel's front matter in words, and its source."),
    "info": Listed("cli.machine", "Show all devices, why a backend is unavailable, and the cache."),
    "cache": Listed("cli.machine", "Manage cached references and compiled code."),
    "doctor": Listed(
        "features.doctor.command", "Check what measuring needs on this machine, and how to fix it."
    ),
}

#: Groups of options that commands have only with a feature: by the names of the commands' functions
#: their names in `FeatureOptions`, and their classes.
OPTIONS = {
    "run": {
        "cluster": "cluster.option.ClusterOptions",
        "error_map": "charts.option.ErrorMapOptions",
    },
    "compare": {"versions": "versions.option.VersionOptions", "gate": "diff.gate.GateOptions"},
}

#: What shows records in `report` and on pages, by the names of their types.
VIEWS = {"Grade": "grade.view", "TuningRecord": "tune.view", "BlockProfile": "timeline.view"}

#: What finds the front matter of a file without any.
ADOPTION = "features.adopt.search"


class FeatureOptions(dict[str, Any]):
    """The groups of options that features add to a command, by name, with the values given."""

    def value(self, group: str, name: str) -> Any:
        """One of them, or None without its feature."""
        return getattr(self.get(group), name, None)


def has(module: str) -> bool:
    """Whether a module of this package is there: always, unless it is of a deleted feature."""
    parts = module.split(".")
    return parts[0] != "features" or (_FEATURES / parts[1]).is_dir()


def load(module: str) -> ModuleType:
    """A module of matbench: `cli.run`, `features.tune.command`, …"""
    return import_module(f"matbench.{module}")


def commands() -> list[str]:
    """The names of all commands that are there."""
    return [name for name, listed in COMMANDS.items() if has(listed.module)]


def options_of(command: str) -> dict[str, type]:
    """The groups of options that features add to a command."""
    groups = {}
    for name, place in OPTIONS.get(command, {}).items():
        module, _, group = f"features.{place}".rpartition(".")
        if has(module):
            groups[name] = getattr(load(module), group)
    return groups


def with_lines_to_paste(error: UsageError) -> UsageError:
    """The error; if front matter lacks keys, with lines to paste that have them."""
    from matbench.kernelfile.missing import MissingKeysError

    module = "features.adopt.suggestions"
    if isinstance(error, MissingKeysError) and has(module):
        better: UsageError = load(module).suggested(error)
        return better
    return error


def view(record: str) -> ModuleType | None:
    """The module that shows records of this type; None if its feature is missing."""
    module = f"features.{VIEWS[record]}"
    return load(module) if has(module) else None
