"""`matbench diff`: what changed between two record files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.console import say, show_report
from matbench.cli.options import VerdictOptions, format_option, grouped
from matbench.cli.outputs import require_apart
from matbench.features.diff.gate import GateOptions

#: How many of the cases that one file lacks are named.
_SHOWN_LABELS = 8


@main.command()
@click.argument("old", metavar="OLD.jsonl")
@click.argument("new", metavar="NEW.jsonl")
@grouped
@click.option(
    "--ignore-environment",
    is_flag=True,
    help="Judge the files even if device, driver, toolkit or clocks differ.",
)
@format_option
def diff(
    old: str,
    new: str,
    verdict: VerdictOptions,
    gate: GateOptions,
    ignore_environment: bool,
    fmt: str,
) -> None:
    """Compare two record files: is NEW FASTER, SLOWER or the SAME?

    With --fail-if-slower: exit 1 if a case is slower than allowed or no longer right, and 3 if no
    case could be judged, for example because the environments of the files differ.

    \b
    matbench diff old.jsonl new.jsonl --fail-if-slower 3%
    """
    from matbench.features.diff import recorded
    from matbench.records import reading
    from matbench.show import comparisons, safe

    require_apart({"--summary": gate.summary}, (old, new))
    notes: list[str] = []
    first, second = reading.read(Path(old), notes), reading.read(Path(new), notes)
    joined = recorded.compare_records(
        first, second, (old, new), verdict.threshold, ignore_environment=ignore_environment
    )

    def tell(line: str) -> None:
        say(safe.line(line), err=True)

    for line in (*notes, *joined.differences):
        tell(f"note: {line}")
    show_report(comparisons.report(joined.records, second[0]), fmt)
    gate.summarize(joined.records, second[0], joined.differences + joined.broken)
    for file, labels in ((old, joined.only_old), (new, joined.only_new)):
        if labels:
            shown = ", ".join(labels[:_SHOWN_LABELS])
            more = len(labels) - _SHOWN_LABELS
            tell(f"only in {file}: {shown}" + (f" and {more:,} more" if more > 0 else ""))
    for line in joined.broken:
        tell(line)
    if gate.fail_if_slower is None:
        return
    is_comparable = recorded.comparable(joined) or ignore_environment
    if not is_comparable and not gate.allow_undecided:
        tell("not comparable: environments differ; use --ignore-environment to judge anyway")
        sys.exit(3)
    gate.exit(joined.records, broken=bool(joined.broken))
