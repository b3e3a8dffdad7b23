"""`matbench report`: the table of record files."""

from __future__ import annotations

import click

from matbench.cli import registry
from matbench.cli.app import main
from matbench.cli.console import read_files, records_in, show_report
from matbench.cli.options import cases_format_option, fastest_option
from matbench.errors import UsageError


@main.command("report")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@fastest_option
@cases_format_option
def report_files(files: tuple[str, ...], fastest: bool, fmt: str) -> None:
    """Print the table of one or more record files.

    What grade wrote is printed as grade prints it.
    """
    from matbench.records.grade import Grade
    from matbench.show import outcomes

    contents = read_files(files)
    environments, kept = records_in(contents)
    findings = [finding for file in contents for finding, _ in file.findings]
    grades = [finding for finding in findings if isinstance(finding, Grade)]
    if kept and grades and fmt in ("csv", "json", "junit"):
        raise UsageError(f"--format {fmt}: outcomes and grades; report their files separately")
    view = registry.view("Grade")
    if kept or not grades or view is None:
        show_report(outcomes.report(kept, environments, fastest=fastest), fmt)
    if grades and view is not None:
        show_report(view.report(grades, environments), fmt)
