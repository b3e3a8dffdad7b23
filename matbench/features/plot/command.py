"""`matbench plot`: speed and error over n, drawn from record files."""

from __future__ import annotations

from pathlib import Path

import click

from matbench.cli.app import main
from matbench.cli.console import read_files, records_in
from matbench.cli.outputs import require_apart


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.jsonl...")
@click.option(
    "--output",
    required=True,
    metavar="FILE",
    help="Draw to FILE (.svg or .png), replacing it if it exists.",
)
def plot(files: tuple[str, ...], output: str) -> None:
    """Plot speed and error over n, from one or more record files.

    One line per kernel, with its fastest parameters for each n; each device, kind of sample (cold
    or hot) and kind of inputs gets its own line, and each precision a row of panels. Sizes just
    beside one with more factors of 2, such as 1000 beside 1024, have panels of their own. Axes are
    logarithmic.

    \b
    matbench run --group ladder --sizes 256..2048 --output mine.jsonl
    matbench plot mine.jsonl --output mine.svg
    """
    from matbench.analysis import cards, repetitions
    from matbench.features.charts import drawing
    from matbench.features.plot import picture

    require_apart({"--output": output}, files)
    drawing.require(Path(output))
    environments, outcomes = records_in(read_files(files))
    distinct, _ = cards.told_apart(repetitions.merged(outcomes), environments)
    devices = dict.fromkeys(outcome.case.device for outcome in distinct)
    picture.draw(distinct, Path(output), " / ".join(devices))
