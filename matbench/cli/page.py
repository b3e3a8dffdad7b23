"""`matbench page`: record files as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.console import read_records, say


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.jsonl...")
@click.option("--output", required=True, metavar="FILE.html", help="Write the page to FILE.html.")
@click.option("--force", is_flag=True, help="Replace an existing page.")
def page(files: tuple[str, ...], output: str, force: bool) -> None:
    """Write one or more record files as an interactive HTML page.

    The page is a single file that needs no network: charts of speed, error and samples, a roofline,
    and a table of all results to sort, filter and copy.

    \b
    matbench run --output mine.jsonl
    matbench page mine.jsonl --output mine.html
    """
    from matbench.show.page import document

    path = Path(output)
    document.require(path, force=force)
    environments, outcomes = read_records(files)
    document.write(path, document.page(outcomes, environments))
    say(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)", err=True)
