"""`matbench report`: the table of record files, their picture and their page."""

from __future__ import annotations

from pathlib import Path

import click

from matbench.cli import registry
from matbench.cli.app import main
from matbench.cli.console import require_apart, say, show_report
from matbench.cli.options import CaseReportOptions, fastest_option, grouped
from matbench.errors import UsageError, listed


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@grouped
@fastest_option
def report_files(files: tuple[str, ...], fastest: bool, shown: CaseReportOptions) -> None:
    """Show one or more record files: as a table, a picture or a page.

    Below the table is what compare, tune, blocks, explain and grade recorded, as they print it.

    \b
    matbench report mine.jsonl --picture mine.svg
    matbench report mine.jsonl pairs.json --page mine.html
    """
    require_apart(shown.outputs, files)

    from matbench.records.reading import Contents, RecordSet

    contents = [Contents(Path(file)) for file in files]
    for note in (note for file in contents for note in file.notes):
        say(f"note: {note}", err=True)

    from matbench.analysis import gathering
    from matbench.records import encoding
    from matbench.show import outcomes

    environments = [one for file in contents for one in file.environments]
    every = RecordSet([*environments, *(one for file in contents for one in file.records)])
    # Of each file alone: another may have the same cases.
    kept = [one for file in contents for one in gathering.without_retried(file.outcomes)]
    reports = [*registry.reports(every.findings, environments)]
    tables = {kind.plural: table for kind, _, table in reports}
    about = {id(outcome) for _, own, _ in reports for _, of_it in own for outcome in of_it}
    alone = [outcome for outcome in kept if id(outcome) not in about]
    names = [*(["outcomes"] if alone else []), *tables]
    if shown.fmt in ("csv", "junit") and len(names) > 1:
        raise UsageError(
            f"--format {shown.fmt}: {listed(names, 'and')} are not one table; report their files "
            "separately, or with --format json"
        )
    in_table = alone if shown.fmt == "csv" else kept
    if in_table or not tables:
        tables = {
            "outcomes": outcomes.report(in_table, environments, fastest=fastest),
            **({} if shown.fmt == "junit" else tables),
        }
    if every.findings and shown.fmt == "json":
        say(encoding.array([*environments, *every.records]))
    else:
        for number, table in enumerate(tables.values()):
            if number:
                say("")
            show_report(table, shown.fmt)
    shown.write(every)
