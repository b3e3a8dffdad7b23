"""`matbench report`: the table of record files."""

from __future__ import annotations

import click

from matbench.cli import registry
from matbench.cli.app import main
from matbench.cli.console import read_files, records_in, say, show_report
from matbench.cli.options import cases_format_option, fastest_option
from matbench.errors import UsageError, listed


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@fastest_option
@cases_format_option
def report_files(files: tuple[str, ...], fastest: bool, fmt: str) -> None:
    """Print the table of one or more record files.

    Below it is what compare, tune, blocks, explain and grade recorded, as they print it.
    """
    from matbench.records import encoding
    from matbench.show import outcomes

    contents = read_files(files)
    environments, kept = records_in(contents)
    found = [pair for file in contents for pair in file.findings]
    if found and fmt == "json":
        say(encoding.array([*environments, *(one for file in contents for one in file.records)]))
        return
    tables = {kind.plural: table for kind, _, table in registry.reports(found, environments)}
    about = {id(outcome) for _, outcomes_of_it in found for outcome in outcomes_of_it}
    alone = [outcome for outcome in kept if id(outcome) not in about]
    names = [*(["outcomes"] if alone else []), *tables]
    if fmt in ("csv", "junit") and len(names) > 1:
        raise UsageError(
            f"--format {fmt}: {listed(names, 'and')} are not one table; report their files "
            "separately, or with --format json"
        )
    shown = alone if fmt == "csv" else kept
    if shown or not tables:
        tables = {
            "outcomes": outcomes.report(shown, environments, fastest=fastest),
            **({} if fmt == "junit" else tables),
        }
    for number, table in enumerate(tables.values()):
        if number:
            say("")
        show_report(table, fmt)
