"""Writes the annotated pictures of docs/reading-the-table.md and the screens in docs/.

`python docs/generate_reading.py` writes them; with `--check` it names those that are out of date
and exits 1. They show committed records: those in results/, and for commands that have none there,
those in docs/examples/.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import example_records as examples
import generate_readme
import msgspec
import screens
from rich.console import Console, Group, RenderableType
from screens import Callout, Spot

from matbench.features.charts import error_map_chart
from matbench.features.charts.speed_and_error import make_chart
from matbench.features.check import view as probes
from matbench.features.check.probe import Need, Probe
from matbench.features.diff import recorded
from matbench.features.explain import roofline_picture
from matbench.features.explain import view as explanation
from matbench.features.explain.roofline import roofline
from matbench.features.plot import picture
from matbench.features.timeline import picture as timeline
from matbench.features.timeline import view as blocks
from matbench.features.tune import view as tuning
from matbench.features.watch import view as watch
from matbench.records import reading
from matbench.show import comparisons, outcomes, terminal
from matbench.show.table import Report

ROOT = generate_readme.ROOT
RESULTS = ROOT / "results"
PICTURES = ROOT / "docs" / "reading"
WALK_THROUGH = ROOT / "docs" / "writing-kernels.md"
WIDTH = 100

# Screens


def screen(
    report: Report | Iterable[RenderableType], title: str, callouts: Sequence[Callout],
    width: int = WIDTH,
) -> str:  # fmt: skip
    parts = terminal.renderables(report, width) if isinstance(report, Report) else report
    return screens.terminal(parts, width, title, callouts)


def run() -> str:
    environments, found = reading.read(RESULTS / "h200.jsonl")
    shown = [o for o in found if o.case.problem.size == "256"]
    return screen(
        outcomes.report(shown, environments, fastest=True),
        "matbench run --sizes 256 --fastest",
        [
            Callout("SM clock", "before"),
            Callout("cold samples", "before"),
            Callout("★", "after"),
            Callout("time", line="kernel"),
            Callout("±", line="kernel"),
            Callout("per block", line="kernel"),
            Callout("TFLOP/s", line="kernel"),
            Callout("× slowest", line="kernel"),
            Callout("max rel err", line="kernel"),
            Callout("skipped", "before", line="single-block"),
            Callout("≈ per block", "before"),
        ],
        112,
    )


def wrong() -> str:
    environments, found = examples.read("run.json")
    return screen(
        outcomes.report(found, environments),
        "matbench run naive-2d tiled --kernel forgot-barrier.cu --set TILE=16 --sizes 256",
        [
            Callout("CPU timings", "before"),
            Callout("load average", "before"),
            Callout("parameters: TILE", "before"),
            Callout("±", line="kernel"),
            Callout("wrong: reference", "before"),
            Callout("¹ not settled", "before"),
            Callout("² drifting", "before"),
        ],
        112,
    )


def compare() -> str:
    environments, found = examples.read("compare.json")
    return screen(
        comparisons.report(found, environments),
        "matbench compare naive-2d tiled --set TILE=16 --sizes 33,256,1000",
        [
            Callout("candidate", "before", line="against"),
            Callout("baseline", line="size"),
            Callout("the candidate is"),
            Callout("interval", line="size"),
            Callout("p", line="size"),
            Callout("verdict", line="size"),
            Callout("UNDECIDED", "before", line="1000"),
        ],
        116,
    )


def diff() -> str:
    names = "old.jsonl", "new.jsonl"
    old, new = (reading.read(examples.FOLDER / name) for name in names)
    joined = recorded.compare_records(old, new, names, 0.01)
    report = comparisons.report(joined.records, [*old[0], *new[0]])
    return screen(
        report,
        f"matbench diff {' '.join(names)}",
        [
            Callout("candidate", "before", line="against"),
            Callout("SM clock", "before"),
            Callout("each case", "before"),
            Callout("the interval allows", "before"),
            Callout("the candidate is"),
            Callout("interval", line="kernel"),
            Callout("p  max", line="kernel"),
            Callout("SLOWER", "before", line="4096"),
            Callout("UNDECIDED", "before", line="1000"),
        ],
        130,
    )


def check() -> str:
    environments, found = examples.read("check.json")
    probed = [each for each in found if isinstance(each, Probe)]
    needs = [each for each in found if isinstance(each, Need)]
    parts = probes.renderables("strip", examples.device(environments), probed, needs)
    return screen(
        parts,
        "matbench check strip.cu --set ROWS=4,16",
        [
            Callout("M×N×K", "after"),
            Callout("inputs", "after", line="M×N×K"),
            Callout("probes", "after", line="M×N×K"),
            Callout("ROWS=16", "after", line="M×N×K"),
            Callout("right", "before", line="exactly a tile"),
            Callout("ROWS=4 at 1", "before"),
            Callout("strip (is|passed) ", "before"),
        ],
    )


def explain_case() -> str:
    """The roofline and the figures of a case."""
    environments, found = examples.explained()
    report = explanation.report(found, environments, chart=76)
    return screen(
        replace(report, sections=report.sections[:1], footer=""),
        "matbench explain tiled --set TILE=16 --sizes 1000",
        [
            Callout("64,791 ┤", "before", line="◇"),
            Callout("15,981 ┤", "before"),
            Callout("● measured rate", "before"),
            Callout("modelled loads", "before"),
            Callout("modelled traffic", "before", line="504 MB"),
            Callout("(least|minimum) traffic", "before", line="12.0 MB"),
            Callout("measured time", "before"),
            Callout("measured rate", "before", line=" TFLOP/s"),
            Callout("measured copy", "before"),
            Callout("measured multiply-adds", "before"),
        ],
    )


def explain_widths() -> str:
    """What fits on the GPU, and what it all means."""
    environments, found = examples.explained()
    here = tuple(width for width in found.widths if width.here)
    found = msgspec.structs.replace(found, widths=here)
    report = explanation.report(found, environments, chart=None)
    return screen(
        replace(report, sections=report.sections[1:]),
        "matbench explain tiled --set TILE=16 --sizes 1000 (continued)",
        [
            Callout("Hopper 9.0: a", "before"),
            Callout("registers", line="parameters"),
            Callout("resident", line="parameters"),
            Callout("occupancy", line="parameters"),
            Callout("modelled loads", line="parameters"),
            Callout("measured", line="parameters"),
            Callout("limited by", line="parameters"),
            Callout("(As modelled|In the model)", "before"),
            Callout("It computes", "before"),
            Callout("It reaches", "before"),
        ],
        118,
    )


def of_blocks() -> str:
    environments, outcome, profile, sample = examples.profiled()
    report = blocks.report(profile, sample, outcome.case.label, outcome, environments)
    return screen(
        report,
        "matbench blocks tiled --set TILE=32 --sizes 512",
        [
            Callout("duration, quartiles", "before"),
            Callout("running together", "before"),
            Callout("waves", "before"),
            Callout("tail", "before"),
            Callout("imbalance", "before"),
            Callout("cost of", "before"),
            Callout("latest end", "before", line="earliest start"),
            Callout("events − an", "before"),
            Callout("duration .µs.", "before"),
        ],
        112,
    )


def tune() -> str:
    environments, found = examples.read("tune.json")
    return screen(
        tuning.report(found, environments),
        "matbench tune thread-tile-2d --sizes 512 --budget 20",
        [
            Callout("size 512: ", "before"),
            Callout("time", line="parameters"),
            Callout("against default", line="^ *parameters"),
            Callout("interval", line="parameters"),
            Callout("by medians", line="parameters"),
            Callout("winner", "before"),
            Callout("default", "before", line="1.000 ×"),
        ],
        118,
    )


# The walk-through of docs/writing-kernels.md: figures that an earlier version measured on a CPU


def text(parts: Iterable[RenderableType]) -> list[str]:
    """What a terminal shows, as lines."""
    console = Console(width=WIDTH, file=io.StringIO(), highlight=False, markup=False)
    with console.capture() as capture:
        console.print(Group(*parts))
    return [line.rstrip() for line in capture.get().splitlines()]


def console_block(lines: Sequence[str]) -> str:
    return "\n".join(["```console", *lines, "```"])


def watch_page(latest: int) -> str:
    """The screen after a version, as text."""
    about, versions = examples.watched()
    return console_block(text(watch.screen("strip.cu", about, versions[:latest], WIDTH)))


def check_page() -> str:
    """Some lines of what `check` prints of the version without guards."""
    environments, found = examples.read("check.json")
    probed = [p for p in found if p.outcome.case.params == {"ROWS": 4}]
    header, *rows = text(probes.renderables("strip", examples.device(environments), probed))
    near = [row for row in rows if re.match(r"1[567] +signed", row)]
    reasons = rows[rows.index("") + 1 :]
    command = "$ matbench check strip.cu --set ROWS=4"
    return console_block([command, header, "…", *near, "…", *reasons])


def watch_screen() -> str:
    about, versions = examples.watched()
    return screen(
        watch.screen("strip.cu", about, versions, WIDTH),
        "matbench watch strip.cu --sizes 1000",
        [
            Callout("strip.cu", "before"),
            Callout("time", line="size"),
            Callout("against", line="size"),
            Callout("this version is"),
            Callout("interval", line="size"),
            Callout("verdict", line="size"),
            Callout("version 2, ", "before"),
            Callout("version 1, ", "before"),
        ],
    )


# Charts

PLOT = (
    Spot(0.975, 0.117), Spot(0.33, 0.158), Spot(0.105, 0.275), Spot(0.36, 0.255),
    Spot(0.62, 0.21), Spot(0.62, 0.585), Spot(0.14, 0.895),
)  # fmt: skip
ROOFLINE = (
    Spot(0.13, 0.60),
    Spot(0.355, 0.20),
    Spot(0.535, 0.20),
    Spot(0.195, 0.42),
    Spot(0.195, 0.585),
)
TIMELINE = (Spot(0.0125, 0.443), Spot(0.53, 0.385), Spot(0.77, 0.275), Spot(0.225, 0.87))
ERROR_MAP = (Spot(0.61, 0.067), Spot(0.88, 0.19), Spot(0.88, 0.346), Spot(0.575, 0.945))


def drawn(draw: Callable[[Path], None], spots: Sequence[Spot], data: object) -> str:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.svg"
        draw(path)
        return screens.spotted(path.read_text(encoding="utf-8"), spots, repr(data))


def speed_chart() -> str:
    _, found = reading.read(RESULTS / "h200-ladder.jsonl")
    kernels = ("coalesced-1d", "thread-tile-2d", "pipelined", "fp16x3", "cublas")
    sizes = ("256", "512", "1024", "2048", "4095", "4096", "8192")
    shown = [o for o in found if o.case.kernel in kernels and o.case.problem.size in sizes]
    return drawn(
        lambda path: picture.draw(shown, path, shown[0].case.device), PLOT, make_chart(shown).lines
    )


def roofline_chart() -> str:
    _, found = examples.explained()
    roof = roofline(found)
    assert roof is not None
    title = f"{found.case.label} on {found.case.device}"
    return drawn(lambda path: roofline_picture.draw(roof, path, title), ROOFLINE, roof)


def timeline_chart() -> str:
    _, outcome, profile, _ = examples.profiled()
    title = outcome.case.label
    return drawn(lambda path: timeline.draw(profile, path, title), TIMELINE, profile.timeline)


def error_chart() -> str:
    found = examples.wrong_elements()
    title = "forgot-barrier TILE=16 at 50x40x36"
    return drawn(
        lambda path: error_map_chart.draw(found, path, title, "wrong: reference"), ERROR_MAP, found
    )


SCREENS: dict[str, Callable[[], str]] = {
    "run": run,
    "run-wrong": wrong,
    "compare": compare,
    "diff": diff,
    "check": check,
    "explain-case": explain_case,
    "explain-widths": explain_widths,
    "blocks": of_blocks,
    "tune": tune,
    "watch": watch_screen,
}
CHARTS: dict[str, Callable[[], str]] = {
    "plot": speed_chart,
    "roofline": roofline_chart,
    "timeline": timeline_chart,
    "error-map": error_chart,
}


def pages() -> generate_readme.Pages:
    """Each file that this script writes: from what it holds to what it must hold."""

    def kept_screen(made: Callable[[], str]) -> Callable[[str], str]:
        def written(old: str) -> str:
            new = made()
            return old if screens.words(old) == screens.words(new) else new

        return written

    def kept_chart(made: Callable[[], str]) -> Callable[[str], str]:
        def written(old: str) -> str:
            new = made()
            return old if screens.same_chart(old, new) else new

        return written

    def walk_through(page: str) -> str:
        page = generate_readme.inserted(page, "refused", watch_page(2))
        page = generate_readme.inserted(page, "check", check_page())
        return generate_readme.inserted(page, "faster", watch_page(3))

    return {
        WALK_THROUGH: walk_through,
        **{PICTURES / f"{name}.svg": kept_screen(made) for name, made in SCREENS.items()},
        **{PICTURES / f"{name}.svg": kept_chart(made) for name, made in CHARTS.items()},
    }


if __name__ == "__main__":
    sys.exit(generate_readme.main(pages()))
