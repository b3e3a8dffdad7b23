"""A watched kernel file, followed: the latest version in detail, each earlier one on one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from matbench.cli import registry
from matbench.cli.console import open_console, say
from matbench.features.watch.versions import SavedVersion, Saves, WatchedVersions
from matbench.model import settings_of
from matbench.show import comparisons, outcomes, safe, units
from matbench.show.outcomes import size_label
from matbench.show.reasons import comparison_reason
from matbench.show.terminal import section_renderables

#: How many lines of a compiler's message are shown, and how many earlier versions.
_SHOWN_LINES = 12
_SHOWN_VERSIONS = 8


def follow(saves: Saves, watched: WatchedVersions) -> None:
    """Look at each save until Ctrl-C, and give up one that is saved again meanwhile.

    A terminal shows the state of the watch and, below it, the current step; a pipe gets a line.
    """
    console, turns = open_console(), saves.wait()
    # Drawn once per step, because nothing else may run while a CPU is timed.
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def show(step: str) -> None:
        if console.is_terminal:
            shown = screen(saves.path.name, watched.versions, console.width)
            live.update(Group(*shown, Text(f"\n{step}", style="cyan")), refresh=True)

    with live if console.is_terminal else nullcontext():
        while True:
            if (content := saves.new()) is None:
                show("Waiting for the next save (Ctrl-C to exit).")
                next(turns)
                continue
            saves.see()
            for step in watched.look(content):
                if saves.new() is not None:
                    break
                show(f"{step[:1].upper()}{step[1:]} …")
            if not console.is_terminal:
                version = watched.versions[-1]
                paste = (f"\n    {line}" for line in version.paste)
                say(f"{saves.path.name} {line(version)}{''.join(paste)}")


def screen(
    file_name: str, versions: Sequence[SavedVersion], width: int | None = None
) -> Iterator[RenderableType]:
    """The whole screen for a file's versions, given oldest first; there is at least one."""
    version = versions[-1]
    yield Text(f"{file_name} · {version.label} · {version.saved}", style="bold")
    if version.comparisons:
        report = comparisons.report(version.comparisons.values())
    else:
        report = outcomes.report([c.outcome for c in version.contenders.values() if c.outcome], [])
    for section in report.sections:
        yield from section_renderables(section, width)
    if version.wrong:
        first, *others = version.wrong.splitlines()
        yield Text(first, style="bold red")
        yield from map(Text, others[:_SHOWN_LINES])
        if others[_SHOWN_LINES:]:
            yield Text(f"… and {len(others) - _SHOWN_LINES} more lines")
        yield from (Text(f"    {pasted}") for pasted in version.paste)
        yield Text("Not timed. Fix the file and save again.")
        if version.has_wrong_result and "check" in registry.COMMANDS:
            yield Text(f"`matbench check {file_name}` tells at which sizes it is wrong.")
    if version.same_as:
        yield Text(f"the same code as {version.same_as}: not timed again.")
    earlier = [v for v in versions[-_SHOWN_VERSIONS - 1 : -1] if v.wrong or v.contenders]
    if earlier:
        yield Text()
    for old in reversed(earlier):
        yield Text(line(old), style="dim", overflow="ellipsis", no_wrap=True)


def line(version: SavedVersion) -> str:
    """The result of a version, on one line."""
    head = f"{version.label}, {version.saved}"
    if version.wrong:
        return f"{head}: not timed: {safe.line(version.wrong)}"
    if version.same_as:
        return f"{head}: the same code as {version.same_as}: not timed again"
    sizes = []
    for problem, best in version.contenders.items():
        settings = settings_of(best.case.params)
        median_ns = best.outcome.median_ns if best.outcome is not None else None
        time = f"{units.duration(median_ns)} at {size_label(problem)}"
        sizes.append(time + (f" ({settings})" if settings else ""))
        if (record := version.comparisons.get(problem)) is not None:
            against = f"not compared with {record.baseline_name}: {comparison_reason(record)}"
            if record.comparison is not None and record.ratio is not None:
                factor, verdict = units.speedup(record.ratio), record.comparison.verdict
                if verdict not in ("FASTER", "SLOWER"):
                    factor = f"{verdict}: {factor}"
                against = f"{factor} than {record.baseline_name}"
            sizes.append(against)
    if not sizes:
        return f"{head}: superseded before it was timed"
    return f"{head}: right; {'; '.join(sizes)}"
