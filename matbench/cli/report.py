"""`matbench report`: the table of record files again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from matbench.cli.app import main
from matbench.cli.options import format_option
from matbench.cli.shared import show_report

if TYPE_CHECKING:
    from matbench.model import Outcome


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@format_option
def report_files(files: tuple[str, ...], fmt: str) -> None:
    """Print the table of one or more record files again."""
    from matbench.records import results
    from matbench.show import report

    environments: list[Any] = []
    outcomes: list[Outcome] = []
    for file in files:
        notes: list[str] = []
        found_environments, found = results.read(Path(file), notes)
        environments += found_environments
        outcomes += results.without_retried(found)
        for note in notes:
            click.echo(note, err=True)
    show_report(report.outcome_report(outcomes, environments), fmt)
