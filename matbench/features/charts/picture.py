"""`--picture`: all charts of some records in one file, an SVG or PNG with a heading."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matbench.analysis import gathering
from matbench.cli import registry
from matbench.cli.console import write_file
from matbench.errors import UsageError
from matbench.features.charts import cases, definitions, outcomes, style
from matbench.features.charts.definitions import Chart, Spec
from matbench.records.reading import RecordSet
from matbench.show import safe

#: Pixels of a PNG to one of the SVG.
_PNG_SCALE = 2
#: Pixels across a chart that is alone in its row, and one of two.
_WIDTH, _HALF = 860, 330
#: Characters of a line of the title, and of the lines below it; of those of one of two charts.
_TITLE, _LINE, _SHORT_LINE = 90, 150, 62
#: Each chart has its own kernels, so its own legend.
_OWN = dict.fromkeys(("stroke", "fill", "shape", "color", "strokeDash"), "independent")


def write(path: Path, found: RecordSet) -> None:
    """Draw some records. Of them `of` says what; `UsageError` if that is nothing, or if the file
    cannot be written."""
    charts, title, lines = of(found)
    if not charts:
        raise UsageError(f"{path}: nothing to draw: no chart shows what these records have")
    draw(path, charts, title, lines)


def of(found: RecordSet) -> tuple[list[Chart], str, list[str]]:
    """The charts of each kind of records, then where C is wrong; the title; and the lines below it.

    Outcomes that a comparison, a search … is about are in its charts.
    """
    kinds = list(registry.by_kind(found.findings))
    about = {id(outcome) for _, own in kinds for _, of_it in own for outcome in of_it}
    alone = [outcome for outcome in found.outcomes if id(outcome) not in about]
    named, environments = gathering.gathered(alone, found.environments)
    devices = [device for environment in environments for device in environment.devices]
    ranked = cases.make_cases(named, devices, {})
    charts = [
        *outcomes.charts(ranked),
        *(chart for kind, own in kinds for chart in kind.charts(own)),
        *outcomes.error_maps([*named, *(o for o in found.outcomes if id(o) in about)]),
    ]
    seen = [record.case for record in (*named, *found.outcomes, *(f for f, _ in found.findings))
            if hasattr(record, "case")]  # fmt: skip
    shown = {outcome.case.device_id: outcome.case.device for outcome in named}
    names = dict.fromkeys(shown.get(case.device_id, case.device) or "no device" for case in seen)
    return charts, " / ".join(names), outcomes.remarks(ranked)


def draw(path: Path, charts: Sequence[Chart], title: str, lines: Sequence[str] = ()) -> None:
    """Write charts to a file; `UsageError` if it cannot be written."""
    write_file(path, drawn(charts, title, lines, is_svg=path.suffix.lower() == ".svg"))


def spec(
    charts: Sequence[Chart], title: str, lines: Sequence[str] = (), *, is_svg: bool = True
) -> Spec:
    """Charts below each other, those that are not full two in a row, under a heading."""
    rows: list[list[Chart]] = []
    for chart in charts:
        if not chart.full and rows and len(rows[-1]) == 1 and not rows[-1][0].full:
            rows[-1].append(chart)
        else:
            rows.append([chart])
    panels = [{"hconcat": [*map(_panel, row)], "align": "none", "resolve": {"scale": _OWN}}
              for row in rows]  # fmt: skip
    whole: Spec = safe.data({
        "padding": 8,
        "vconcat": panels,
        "align": "none",
        "resolve": {"scale": _OWN},
        "params": [{"name": "isolated", "value": []}],
        "title": {
            "text": textwrap.wrap(title, _TITLE),
            "subtitle": [part for line in lines for part in textwrap.wrap(line, _LINE)],
        },
        "config": definitions.config(style.INK if is_svg else style.DARK_INK),
        **({} if is_svg else {"background": "#fff"}),
    })  # fmt: skip
    return whole


def drawn(
    charts: Sequence[Chart], title: str, lines: Sequence[str] = (), *, is_svg: bool = True
) -> bytes:
    """An SVG or PNG of charts; a screen reader says of an SVG what stands in its headings."""
    import vl_convert

    convert: Callable[..., Any] = vl_convert.vegalite_to_svg
    if not is_svg:
        convert = partial(vl_convert.vegalite_to_png, scale=_PNG_SCALE)
    written = json.dumps(spec(charts, title, lines, is_svg=is_svg), ensure_ascii=False)
    try:
        made = convert(written, allowed_base_urls=[])
    except ValueError:  # it cut a label in the middle of a character of two UTF-16 units
        written = re.sub("[\U00010000-\U0010ffff]", "\ufffd", written)
        made = convert(written, allowed_base_urls=[])
    if not is_svg:
        return bytes(made)
    said = [*lines, *(part for chart in charts for part in (chart.title, chart.note))]
    words = html.escape(safe.text(". ".join(filter(None, said))))
    about = f' role="img"><title>{html.escape(safe.text(title))}</title><desc>{words}</desc>'
    return str(made).replace(">", about, 1).encode()


def _panel(chart: Chart) -> Spec:
    line = _LINE if chart.full else _SHORT_LINE
    title = {
        "text": textwrap.wrap(chart.title, line), "subtitle": textwrap.wrap(chart.note, line),
        "fontSize": 12, "subtitleFontSize": 11, "offset": 8,
    }  # fmt: skip
    width = {} if "hconcat" in chart.spec else {"width": _WIDTH if chart.full else _HALF}
    return {**width, **chart.spec, "title": title}
