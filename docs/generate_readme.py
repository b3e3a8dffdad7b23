"""Writes what the README and the pages beside it show of the committed results.

`python docs/generate_readme.py` writes; with `--check` it only says what is not up to date, and
exits 1. Tables stand between `<!-- NAME -->` and `<!-- /NAME -->`; the rest of a page is kept.
"""

from __future__ import annotations

import html
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from tabulate import tabulate

from matbench.kernelfile import catalogue
from matbench.model import Environment, Kernel, Outcome
from matbench.records import results
from matbench.show import plots, report

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "h200.jsonl"
BESIDE_NVBENCH = ROOT / "results" / "h200-nvbench.json"
PICTURE = ROOT / "docs" / "terminal.svg"
LADDER = ROOT / "results" / "h200-ladder.jsonl"
CHART = ROOT / "docs" / "ladder.svg"
SIZES = ("1000", "4096")
PICTURED_SIZE = "1000"
PICTURE_WIDTH = 112
COLUMNS = (
    "kernel", "parameters", "time", "±", "per block", "GFLOP/s", "TFLOP/s", "% of cuBLAS",
    "% of limit", "× slowest", "max rel err",
)  # fmt: skip
WORKLOAD_COLUMNS = (
    "kernel", "parameters", "time", "±", "GB/s", "TB/s", "% of cuBLAS", "% of copy", "× slowest",
    "max rel err",
)  # fmt: skip
#: The tables of other workloads: the records of each, and which of them are shown.
WORKLOADS: dict[str, tuple[str, Callable[[Outcome], bool]]] = {
    "dot": ("h200-dot.jsonl", lambda o: _rung(o) and o.problem.inputs != "signed"),
    "signed": ("h200-dot.jsonl", lambda o: o.problem.inputs == "signed"),
    "blocks": ("h200-dot.jsonl", lambda o: o.kernel == "dot-tree" and _long(o)),
    "cubes": ("h200-cubes.jsonl", lambda o: True),
    "reverse": ("h200-reverse.jsonl", lambda o: o.status == "measured"),
}

Records = tuple[Sequence[Environment], Sequence[Outcome]]


def stale(outcomes: Iterable[Outcome], kernels: Iterable[Kernel]) -> list[str]:
    """The kernels among the outcomes whose file is another one by now, or gone."""
    now = {kernel.name: kernel.sha256 for kernel in kernels}
    return sorted({o.kernel for o in outcomes if now.get(o.kernel) != o.sha256})


def fastest(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Each kernel at its fastest parameters for each problem; one that was not measured, as is."""
    best: dict[tuple[object, ...], Outcome] = {}
    for outcome in outcomes:
        key = outcome.kernel, outcome.backend, outcome.problem, outcome.timing_mode
        if key not in best or (outcome.median_ns or 0) < (best[key].median_ns or 0):
            best[key] = outcome
    return list(best.values())


def table(records: Records, kernels: Iterable[Kernel]) -> str:
    """The README's table, its notes, and which of its rows are stale."""
    environments, outcomes = records
    shown = [o for o in outcomes if o.problem.size in SIZES and o.status != "skipped"]
    file = RESULTS.relative_to(ROOT).as_posix()
    lines = [
        _printed(environments, fastest(shown), COLUMNS),
        f"Each kernel at its fastest parameters; all {len(outcomes)} cases: "
        f"`matbench report {file}`.",
        *_stale(outcomes, kernels),
    ]
    return "\n\n".join(lines)


def workload_table(name: str, kernels: Iterable[Kernel]) -> str:
    """A table of another workload, its notes, and which of its rows are stale."""
    file, is_shown = WORKLOADS[name]
    environments, outcomes = results.read(RESULTS.parent / file)
    shown = [outcome for outcome in outcomes if is_shown(outcome)]
    printed = _printed(environments, shown, WORKLOAD_COLUMNS)
    return "\n\n".join([printed, *_stale(shown, kernels)])


def _rung(outcome: Outcome) -> bool:
    """Whether a row is the one of its kernel: the tutorial's tree has 32 blocks."""
    return outcome.kernel != "dot-tree" or outcome.params["BLOCKS"] == 32


def _long(outcome: Outcome) -> bool:
    return outcome.problem.inputs == "uniform" and outcome.problem.N == 2**28


def _stale(outcomes: Iterable[Outcome], kernels: Iterable[Kernel]) -> list[str]:
    changed = stale(outcomes, kernels)
    if not changed:
        return []
    names = ", ".join(f"`{name}`" for name in changed)
    return [f"**Stale:** changed since this was measured: {names}."]


def _printed(
    environments: Sequence[Environment], shown: Sequence[Outcome], columns: Sequence[str]
) -> str:
    full = report.outcome_report(shown, environments)
    sections = tuple(_narrowed(section, columns) for section in full.sections)
    return report.text(replace(full, sections=sections, footer=""), "pipe")


def _narrowed(section: report.Section, columns: Sequence[str]) -> report.Section:
    """A section with the columns that there is room for."""
    kept = [i for i, column in enumerate(section.columns) if column.title in columns]
    return replace(
        section,
        columns=tuple(section.columns[i] for i in kept),
        legend=section.legend if "per block" in columns else (),
        groups=tuple(
            replace(
                group,
                rows=tuple(
                    replace(row, cells=tuple(row.cells[i] for i in kept)) for row in group.rows
                ),
            )
            for group in section.groups
        ),
    )


def clock_costs(records: Records) -> str:
    """By how much the block clock changed each launch."""
    found = [o for o in records[1] if o.block_perturbation is not None]
    sizes = list(dict.fromkeys(o.problem.size for o in found))
    rows: dict[str, dict[str, str]] = {}
    for outcome in found:
        values = " ".join(f"{name}={value}" for name, value in outcome.params.items())
        row = rows.setdefault(f"{outcome.kernel} {values}".strip(), {})
        row[outcome.problem.size] = f"{outcome.block_perturbation:+.1%}"
    return tabulate(
        [[name, *(row.get(size, "") for size in sizes)] for name, row in rows.items()],
        headers=["case", *(f"n = {size}" for size in sizes)],
        tablefmt="pipe",
        colalign=["left", *("right" for _ in sizes)],
        disable_numparse=True,
    )


def figures(path: Path) -> str:
    """The figures that a benchmark drew from its tables, with the bars they were held against."""

    def told(value: float | None, unit: str) -> str:
        if value is None:
            return ""
        return f"{value:.2%}" if unit == "share" else f"{value:.1f} {unit}"

    found = json.loads(path.read_text(encoding="utf-8"))["figures"]
    return tabulate(
        [[f["what"], told(f["value"], f["unit"]), told(f["bar"], f["unit"])] for f in found],
        headers=["H200", "measured", "bar"],
        tablefmt="pipe",
        colalign=["left", "right", "right"],
        disable_numparse=True,
    )


#: The cuBLAS product that a kernel of that precision is held against.
OPPONENTS = {"float32": "cublas", "tf32": "cublas-tf32", "bfloat16": "cublas-bf16"}
BUILD_SIZE = "4096"


def ladder_table(outcomes: Iterable[Outcome], kernels: Iterable[Kernel]) -> str:
    """TFLOP/s of each rung at its fastest parameters for each size, and the share of cuBLAS's."""
    found = list(outcomes)
    sizes = list(dict.fromkeys(o.problem.size for o in found))
    sizes.sort(key=lambda size: ("x" in size, int(size.split("x")[0]), size))
    speeds: dict[str, dict[str, float]] = {}
    builds: dict[str, Outcome] = {}
    for outcome in fastest(found):
        if outcome.median_ns:
            problem = outcome.problem
            speed = 2e-3 * problem.M * problem.N * problem.K / outcome.median_ns
            speeds.setdefault(outcome.kernel, {})[problem.size] = speed
            if problem.size == BUILD_SIZE:
                builds[outcome.kernel] = outcome

    def told(name: str, size: str) -> str:
        speed = speeds[name].get(size)
        other = speeds.get(OPPONENTS[builds[name].precision], {}).get(size)
        if speed is None or not other:
            return ""
        shown = f"{speed:.1f}" if speed < 100 else f"{speed:.0f}"
        return shown if name in OPPONENTS.values() else f"{shown} ({speed / other:.0%})"

    def built(name: str) -> tuple[str, ...]:
        resources, launch = builds[name].resources, builds[name].launch
        if resources is None or resources.registers is None or launch is None:
            return "", "", ""
        shared = (resources.static_shared_bytes or 0) + launch.shared_bytes
        occupancy = builds[name].occupancy
        return str(resources.registers), f"{shared:,}", f"{occupancy:.0%}" if occupancy else ""

    names = sorted(builds, key=lambda name: speeds[name][BUILD_SIZE])
    rows = [[f"`{name}`", *built(name), *(told(name, size) for size in sizes)] for name in names]
    shown = tabulate(
        rows,
        headers=["kernel", "registers", "shared (bytes)", "occupancy", *sizes],
        tablefmt="pipe",
        colalign=["left", *("right" for _ in range(3 + len(sizes)))],
        disable_numparse=True,
    )
    spilled = [n for n, o in builds.items() if o.resources and o.resources.spilled_bytes]
    spills = (
        f"Spilled registers: {', '.join(spilled)}." if spilled else "No rung spills a register."
    )
    return "\n\n".join([shown, spills, *_stale(found, kernels)])


def picture(records: Records) -> str:
    """What a terminal shows of the tutorial's kernels at one size, as SVG."""
    environments, outcomes = records
    shown = [o for o in outcomes if o.problem.size == PICTURED_SIZE and o.group == "tutorial"]
    console = Console(
        record=True,
        file=io.StringIO(),
        width=PICTURE_WIDTH,
        force_terminal=True,
        color_system="truecolor",
        _environ={},
    )
    for part in report.renderables(report.outcome_report(shown, environments), PICTURE_WIDTH):
        console.print(part)
    # Whoever looks at it has a font; nothing is fetched for it.
    template = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    lines = console.export_svg(
        title=f"matbench run --sizes {PICTURED_SIZE}", code_format=template
    ).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip()) + "\n"


def picture_text(svg: str) -> str:
    """The words of a picture: another release of rich may draw them elsewhere."""
    return html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).replace("\xa0", "")


def chart(outcomes: Sequence[Outcome]) -> str:
    """What `matbench plot` draws of them, as SVG."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chart.svg"
        plots.chart(outcomes, path, " / ".join(dict.fromkeys(o.device for o in outcomes)))
        return path.read_text(encoding="utf-8")


def inserted(page: str, name: str, block: str) -> str:
    """A page with `block` between the markers of `name`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise ValueError(f"the page needs the markers of {name!r} once")
    return pattern.sub(lambda found: f"{found[1]}\n{block}\n\n{found[2]}", page)


def pages() -> dict[Path, Callable[[str], str]]:
    """Each file that this script writes: from what it holds to what it must hold."""
    records = results.read(RESULTS)
    kernels = catalogue.builtin()
    svg = picture(records)
    _, ladder = results.read(LADDER)
    digest = plots.digest(ladder)

    def timing(page: str) -> str:
        page = inserted(page, "nvbench", figures(BESIDE_NVBENCH))
        return inserted(page, "costs", clock_costs(records))

    def readme(page: str) -> str:
        page = inserted(page, "results", table(records, kernels))
        return inserted(page, "cubes", workload_table("cubes", kernels))

    def others(page: str) -> str:
        for name in WORKLOADS:
            page = inserted(page, name, workload_table(name, kernels))
        return page

    def rungs(page: str) -> str:
        return inserted(page, "ladder", ladder_table(ladder, kernels))

    return {
        ROOT / "README.md": readme,
        ROOT / "docs" / "ladder.md": rungs,
        ROOT / "docs" / "timing.md": timing,
        ROOT / "docs" / "workloads.md": others,
        PICTURE: lambda old: old if picture_text(old) == picture_text(svg) else svg,
        CHART: lambda old: old if digest in old else chart(ladder),
    }


def outdated() -> dict[Path, str]:
    """The files that do not hold what they must, with what that is."""
    found = {}
    for path, written in pages().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        new = written(old)
        if new != old:
            found[path] = new
    return found


def main() -> int:
    changes = outdated()
    check = "--check" in sys.argv[1:]
    for path, text in changes.items():
        print(f"{path.relative_to(ROOT)}: {'not up to date' if check else 'written'}")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changes))


if __name__ == "__main__":
    sys.exit(main())
