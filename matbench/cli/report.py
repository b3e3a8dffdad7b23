"""`matbench report`: the table of record files."""

from __future__ import annotations

import click

from matbench.cli.app import main
from matbench.cli.console import read_records, show_report
from matbench.cli.options import fastest_option, format_option


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@fastest_option
@format_option
def report_files(files: tuple[str, ...], fastest: bool, fmt: str) -> None:
    """Print the table of one or more record files."""
    from matbench.show import outcomes

    environments, found = read_records(files)
    show_report(outcomes.report(found, environments, fastest=fastest), fmt)
