"""`matbench page`: record files as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from matbench.cli.app import main
from matbench.cli.console import read_files, records_in, say
from matbench.cli.outputs import require_apart
from matbench.errors import UsageError

if TYPE_CHECKING:
    from matbench.records.environment import Environment
    from matbench.records.outcome import Outcome
    from matbench.records.reading import Pair


@main.command("page")
@click.argument("files", nargs=-1, required=True, metavar="FILE.jsonl...")
@click.option(
    "--output", metavar="FILE", help="File of the page: .html. Default: named like the first file."
)
@click.option("--force", is_flag=True, help="Replace an existing page.")
def page_of_files(files: tuple[str, ...], output: str | None, force: bool) -> None:
    """Write one or more record files as an interactive HTML page.

    The page is a single file that needs no network: charts of speed, error and samples, a roofline,
    and a table of results to sort, filter and copy. What compare, tune, blocks and explain
    print with --format json can be read, too, and adds its own sections.

    \b
    matbench run --output mine.jsonl
    matbench page mine.jsonl
    """
    from matbench.features.page import document

    path = Path(output) if output is not None else _beside(files[0])
    require_apart({"--output": str(path)}, files)
    document.require(path, force=force)
    contents = read_files(files)
    environments, outcomes = records_in(contents)
    findings = [finding for content in contents for finding in content.findings]
    write_page(path, outcomes, environments, findings)


def write_page(
    path: Path,
    outcomes: Sequence[Outcome],
    environments: Sequence[Environment],
    findings: Iterable[Pair] = (),
) -> None:
    """Write the page and say so."""
    from matbench.analysis import cards, repetitions
    from matbench.features.page import document

    distinct = cards.told_apart(repetitions.merged(outcomes), environments)
    document.write(path, document.page(*distinct, findings))
    say(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)", err=True)


def _beside(file: str) -> Path:
    """The page of a record file: its name with .html."""
    if not Path(file).name:
        raise UsageError(f"{file!r}: not a file name; name a record file, such as mine.jsonl")
    return Path(file).with_suffix(".html")
