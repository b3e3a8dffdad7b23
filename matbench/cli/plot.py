"""`matbench plot`: speed and error over n, drawn from record files."""

from __future__ import annotations

from pathlib import Path

import click

from matbench.cli.app import main


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.jsonl...")
@click.option(
    "--output",
    required=True,
    metavar="FILE",
    help="Where to draw: .svg or .png; replaces the file.",
)
def plot(files: tuple[str, ...], output: str) -> None:
    """Draw speed and the largest error over n, from one or more record files.

    One line a kernel, at its fastest parameters for each n; devices, ways of timing and kinds of
    inputs keep apart. Both axes are logarithmic.

    \b
    matbench run --group ladder --sizes 256,512,1024,2048 --output mine.jsonl
    matbench plot mine.jsonl --output mine.svg
    """
    from matbench.records import results
    from matbench.show import plots

    plots.require(Path(output), plots.CHART_SUFFIXES, files)
    outcomes = []
    for file in files:
        notes: list[str] = []
        _, found = results.read(Path(file), notes)
        outcomes += results.without_retried(found)
        for note in notes:
            click.echo(note, err=True)
    devices = dict.fromkeys(outcome.device for outcome in outcomes)
    plots.chart(outcomes, Path(output), " / ".join(devices))
