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


class Kind(NamedTuple):
    """A kind of records about outcomes: their tag, name and type, and the modules that show them.

    The view's `report` is of records and environments; if it has `recorded`, that is of records
    with their outcomes. `PAGE` is the section of pages that has it. `drawn` has their `charts`.
    """

    tag: str
    plural: str
    type: str
    view: str
    drawn: str

    @property
    def page(self) -> str:
        """The section of pages."""
        return str(load(self.view).PAGE)

    def charts(self, found: Sequence[Pair]) -> list[Any]:
        """The charts of some of its records, on pages and in pictures."""
        return [*load(self.drawn).charts(found)] if has(self.drawn) else []


class Part(NamedTuple):
    """What a module offers: a command, with the first sentence of its help, and the records that it
    writes; or a group of options of another command, as `command`, name and class."""

    module: str
    command: str = ""
    summary: str = ""
    kind: Kind | None = None
    options: tuple[str, str, str] | None = None


#: All commands, in the order of the help, then options. Records are in the order of reports.
PARTS = (
    Part("cli.run", "run", "Check and time KERNELS over sizes and parameters."),
    Part("features.new.command", "new", "Create a kernel file: a copy that says what to change."),
    Part("features.adopt.command", "adopt",
         "Find out how to launch a file's kernels, and save that."),
    Part("features.watch.command", "watch",
         "Check and time FILE whenever it is saved, until Ctrl-C."),
    Part("cli.compare", "compare",
         "Compare kernels or record files: is CANDIDATE FASTER, SLOWER or the SAME?",
         Kind("comparison", "comparisons", "records.comparison:ComparisonRecord",
              "show.comparisons", "features.charts.comparisons")),
    Part("features.history.command", "history", "Find the commits that made a kernel slower."),
    Part("cli.serve", "serve", "Judge kernels for another program: JSON Lines in and out."),
    Part("features.tune.command", "tune", "Find the fastest values of KERNEL's constants.",
         Kind("tuning", "searches", "features.tune.record:TuningRecord", "features.tune.view",
              "features.tune.chart")),
    Part("features.timeline.command", "blocks",
         "Time each block of one launch: how long, and where it ran.",
         Kind("blocks", "blocks", "features.timeline.record:BlockProfile",
              "features.timeline.view", "features.timeline.chart")),
    Part("features.explain.command", "explain", "Explain what limits a kernel's speed.",
         Kind("explanation", "explanations", "features.explain.record:Explanation",
              "features.explain.view", "features.explain.roofline")),
    Part("features.check.command", "check",
         "Probe kernels at awkward shapes: which do they get right?"),
    Part("features.grade.command", "grade",
         "Describe the arithmetic of kernels: errors, range, order.",
         Kind("grade", "grades", "features.grade.record:Grade", "features.grade.view",
              "features.grade.chart")),
    Part("cli.report", "report", "Show one or more record files: as a table, a picture or a page."),
    Part("cli.kernels", "kernels",
         "List the kernels, or show one: its front matter, and its source."),
    Part("features.doctor.command", "doctor",
         "Check what measuring needs on this machine, and how to fix it; show its devices."),
    Part("features.cluster.option", options=("run", "cluster", "ClusterOptions")),
    Part("features.gate.option", options=("compare", "gate", "GateOptions")),
)  # fmt: skip

#: Further records of files, whose outcomes are shown as those of `run`.
_FURTHER = {"probe": "features.check.probe:Probe", "need": "features.check.probe:Need"}
#: What draws reports, and what makes pages of them.
PICTURE, PAGE = "features.charts.picture", "features.page.document"
#: What finds the front matter of a file without any, and what reads files in other forms.
ADOPTION, SUBMISSIONS = "features.adopt.search", "features.submissions.reading"
#: What serves the Model Context Protocol.
MCP = "features.mcp_server.server"
#: What measures on other machines.
CLUSTER = "features.cluster.remote_pool"


class FeatureOptions(dict[str, Any]):
    """The groups of options that features add to a command, by name, with the values given."""


def has(module: str) -> bool:
    """Whether a module of this package is there: always, unless it is of a deleted feature."""
    parts = module.split(".")
    return parts[0] != "features" or (_FEATURES / parts[1]).is_dir()


def load(module: str) -> ModuleType:
    """A module of matbench: `cli.run`, `features.tune.command`, …"""
    return import_module(f"matbench.{module}")


#: The commands and kinds of records that are there, by their names and tags.
COMMANDS = {part.command: part for part in PARTS if part.command and has(part.module)}
RECORDS = {part.kind.tag: part.kind for part in COMMANDS.values() if part.kind is not None}
_types = _FURTHER | {tag: kind.type for tag, kind in RECORDS.items()}
KINDS.update({tag: f"matbench.{name}" for tag, name in _types.items() if has(name)})


def options_of(command: str) -> dict[str, type]:
    """The groups of options that features add to a command."""
    return {
        part.options[1]: getattr(load(part.module), part.options[2])
        for part in PARTS
        if part.options is not None and part.options[0] == command and has(part.module)
    }


def with_lines_to_paste(error: UsageError) -> UsageError:
    """The error; if front matter lacks keys, with lines to paste that have them."""
    from matbench.kernelfile.tables import MissingKeysError

    module = "features.adopt.suggestions"
    if isinstance(error, MissingKeysError) and has(module):
        better: UsageError = load(module).suggested(error)
        return better
    return error


def by_kind(found: Iterable[Pair]) -> Iterator[tuple[Kind, list[Pair]]]:
    """Records about outcomes, all of one kind at a time."""
    pairs = list(found)
    for tag, kind in RECORDS.items():
        if own := [pair for pair in pairs if type(pair[0]).__struct_config__.tag == tag]:
            yield kind, own


def reports(
    found: Iterable[Pair], environments: Sequence[Environment]
) -> Iterator[tuple[Kind, list[Pair], Report]]:
    """The same, with a report of each kind."""
    for kind, own in by_kind(found):
        view = load(kind.view)
        if hasattr(view, "recorded"):
            yield kind, own, view.recorded(own, environments)
        else:
            yield kind, own, view.report([record for record, _ in own], environments)
