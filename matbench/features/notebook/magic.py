"""`%%matbench`: checks and times the kernel in a cell, and shows the table and where C is wrong."""

from __future__ import annotations

import base64
import html
import importlib.util
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from matbench.cli.app import Command
from matbench.cli.console import open_console
from matbench.cli.options import DeadlineOptions, DeviceOptions, SizeOptions, grouped
from matbench.cli.selection import ContractOptions, KernelFiles
from matbench.cli.serve import JudgeOptions
from matbench.errors import MatbenchError, UsageError
from matbench.features.charts import error_map_chart, picture
from matbench.features.page import findings
from matbench.records.environment import run_environment
from matbench.records.outcome import ErrorCells, Outcome
from matbench.show import outcomes, safe, terminal

if TYPE_CHECKING:
    from matbench.cli.judge import Judge

_NAME = "matbench"
#: The longer side of an error map, in pixels, and how many of them a cell shows.
_MAP_SIDE, _MOST_MAPS = 300, 4
_STYLE = """<style>
.matbench table { font-variant-numeric: tabular-nums; margin: .5em 0; }
.matbench :is(td, th):not([style]) { text-align: left !important; }
.matbench p { margin: .1em 0 !important; }
.matbench h3 { margin: .8em 0 .2em !important; }
.matbench .wide { overflow-x: auto; }
</style>"""


class CellMagic:
    """The magic of one shell: a judge that stays warm between cells, made with options `asked`."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._judge: Judge | None = None
        self._asked: Any = None

    def close(self) -> None:
        """End the judge's process."""
        if self._judge is not None:
            self._judge.close()
        self._judge = None

    def judge(self, timing: JudgeOptions, *where: Any) -> Judge:
        """The judge of earlier cells if they had the same options, or else another."""
        if self._judge is None or self._asked != (timing, *where):
            self.close()
            sizes, *others = where
            self._judge = timing.judge(sizes, ContractOptions(()), *others)
            self._asked = (timing, *where)
        return self._judge

    def run(self, line: str, cell: str) -> None:
        """Check and time the kernel of this cell; %%matbench --help has the options."""
        from IPython.core.error import UsageError as Refused  # is shown as one line

        try:
            obj = self, f"{cell}\n"
            _command.main(shlex.split(line), f"%%{_NAME}", standalone_mode=False, obj=obj)
        except click.ClickException as error:
            raise Refused(safe.flat(error.format_message())) from None
        except (MatbenchError, ValueError) as error:
            raise Refused(safe.flat(str(error))) from None
        except click.Abort:
            self.close()  # a task may be half done
            raise Refused("interrupted") from None


def load_ipython_extension(shell: Any) -> None:
    """Register `%%matbench` with an IPython shell: what `%load_ext matbench` calls."""
    shell.register_magic_function(CellMagic(shell).run, "cell", _NAME)


def unload_ipython_extension(shell: Any) -> None:
    """Forget `%%matbench`, and end its process."""
    shell.magics_manager.magics["cell"].pop(_NAME).__self__.close()


@click.command(cls=Command)
@click.option(
    "--baseline", "baselines", multiple=True, metavar="NAME|FILE",
    help="Show it in the same table: cublas, numpy, tiled, or a file. Repeatable.",
)  # fmt: skip
@grouped
def _command(
    baselines: tuple[str, ...], sizes: SizeOptions, timing: JudgeOptions, files: KernelFiles,
    contract: ContractOptions, device: DeviceOptions, deadlines: DeadlineOptions,
) -> None:  # fmt: skip
    """Check and time the kernel in this cell: CUDA C, or a function in Python.

    \b
    %%matbench --sizes 256,1000
    %%matbench --sizes 1000 --baseline cublas
    """
    magic, cell = click.get_current_context().obj
    judge = magic.judge(timing, replace(sizes, sizes=None), device, deadlines)
    judged = partial(judge.run, sizes=sizes.sizes)
    own = judged(cell, front_matter=files.given, contract=contract.asked)
    remark = ""
    if not own.cases and own.adoption is not None:  # shows where it is wrong, called in that way
        remark = own.reason or ""
        own = judged(cell, front_matter=own.adoption.table)
    verdicts = [own, *map(judged, baselines)]
    for verdict in verdicts:
        if not verdict.cases:
            raise UsageError(verdict.reason or f"{verdict.kernel} has no cases")
    cases = [case for verdict in verdicts for case in verdict.cases]
    about = run_environment([_NAME], [judge.device], sizes.recorded)
    report = outcomes.report(cases, [about])
    console = open_console()
    plain = terminal.renderables(report, console.width if console.is_terminal else None)
    below = [safe.text(line) for line in (report.footer, remark) if line]
    parts = [_STYLE, *map(findings.table, report.sections)]
    parts += [f"<p>{html.escape(line)}</p>" for line in below]
    magic.shell.display_pub.publish({
        "text/plain": terminal.text(*plain, *below[1:]),
        "text/html": f'<div class="matbench">{"".join(parts)}{_maps(cases)}</div>',
    })  # fmt: skip


def _maps(cases: Sequence[Outcome]) -> str:
    """Where C is wrong, of the first cases that are: images, as the names in an SVG would be those
    of other cells, too."""
    wrong = [(one, cells) for one in cases if isinstance(cells := one.error_map, ErrorCells)]
    if wrong and importlib.util.find_spec("vl_convert") is None:
        return "<p>To see where C is wrong: pip install 'matbench-cuda[plots]'</p>"
    figures = []
    for outcome, cells in wrong[:_MOST_MAPS]:
        chart = error_map_chart.chart(cells, outcome.case.label, _MAP_SIDE)
        bare = msgspec.structs.replace(chart, title="", note="")
        image = base64.b64encode(picture.drawn([bare], "")).decode()
        said = html.escape(safe.line(f"{chart.title}: {chart.note}"))
        figures.append(
            f'<figure><figcaption>{said}</figcaption><img alt="Where C is wrong" '
            f'src="data:image/svg+xml;base64,{image}"></figure>'
        )
    return "".join(figures)
