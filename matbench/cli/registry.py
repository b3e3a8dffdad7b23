"""What the core offers beyond itself: the only module of the core that names modules of features.

Everything is named, and imported when it is used. A feature whose folder is missing is left out:
its command, its options of other commands, and what pages and reports show of its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from matbench.errors import UsageError
from matbench.records import KINDS

if TYPE_CHECKING:
    from matbench.records.environment import Environment
    from matbench.records.reading import Pair
    from matbench.show.table import Report

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
    "compare": {"gate": "diff.gate.GateOptions"},
}


class Kind(NamedTuple):
    """A kind of records about outcomes: their name and type, and the module that shows them.

    The module's `report` is of records and environments; if it has `recorded`, that is of records
    with their outcomes. `PAGE` is the section of pages that has it, `charts` what it draws there.
    """

    plural: str
    type: str
    view: str


#: By the tags of the records, in the order of reports.
RECORDS = {
    "comparison": Kind("comparisons", "records.comparison:ComparisonRecord", "show.comparisons"),
    "tuning": Kind("searches", "features.tune.record:TuningRecord", "features.tune.view"),
    "blocks": Kind("blocks", "features.timeline.record:BlockProfile", "features.timeline.view"),
    "explanation": Kind(
        "explanations", "features.explain.record:Explanation", "features.explain.view"
    ),
    "grade": Kind("grades", "features.grade.record:Grade", "features.grade.view"),
}

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


_there = {tag: kind for tag, kind in RECORDS.items() if has(kind.type)}
KINDS.update({tag: f"matbench.{kind.type}" for tag, kind in _there.items()})


def reports(
    found: Iterable[Pair], environments: Sequence[Environment]
) -> Iterator[tuple[Kind, list[Pair], Report]]:
    """Records about outcomes, all of one kind at a time, and a report of them."""
    pairs = list(found)
    for tag, kind in _there.items():
        if own := [pair for pair in pairs if type(pair[0]).__struct_config__.tag == tag]:
            view = load(kind.view)
            if hasattr(view, "recorded"):
                yield kind, own, view.recorded(own, environments)
            else:
                yield kind, own, view.report([record for record, _ in own], environments)
