"""The page as one HTML document: text, data, styles and scripts, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.metadata
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from matbench import __version__
from matbench.analysis import gathering, ranking
from matbench.cache import Cache
from matbench.cli.console import write_file
from matbench.features.charts import cases, definitions, error_map_chart
from matbench.features.charts.cases import COLUMNS, Found
from matbench.features.charts.definitions import PERCENT, SCIENTIFIC, quantity
from matbench.features.page import findings as _findings
from matbench.features.page import summary
from matbench.features.page.findings import table
from matbench.features.page.summary import Summary
from matbench.records.environment import Environment
from matbench.records.outcome import ErrorCells, Outcome
from matbench.records.reading import Pair, RecordSet
from matbench.show import safe

_HERE = Path(__file__).parent
_MAP_SIDE = 250  # pixels
_TITLES = {
    "summary": "Summary", "speed": "Speed", "error": "Error", "roofline": "Roofline",
    "energy": "Energy", "samples": "Samples", "wrong": "Wrong and failed", "results": "Results",
}  # fmt: skip


def write(path: Path, found: RecordSet) -> None:
    """Write the page of some records; `UsageError` if that cannot be."""
    gathered = gathering.gathered(found.outcomes, found.environments)
    write_file(path, page(*gathered, found.findings).encode())


def page(
    outcomes: Sequence[Outcome], environments: Sequence[Environment], findings: Iterable[Pair] = ()
) -> str:
    """The whole document; the same records give the same bytes."""
    devices = [device for environment in environments for device in environment.devices]
    pairs = list(findings)
    case_data = cases.make_cases(outcomes, devices, _findings.limits(pairs))
    more = _findings.make_findings(pairs, case_data.ranked)
    about = summary.make_summaries(case_data.ranked, environments)
    timed = [outcome for outcome in case_data.outcomes if ranking.time_ns(outcome) is not None]
    has = {  # what each section has to show
        "summary": True,
        "speed": bool(timed),
        "error": any(outcome.max_rel_err for outcome in timed),
        "roofline": any(view.roofline for view in case_data.views),
        "energy": any(outcome.sustained and outcome.sustained.energy_j for outcome in timed),
        "samples": any(case.series for case in case_data.cases),
        **{name: bool(found.html) for name, found in more.items()},
        "wrong": any(outcome.is_broken for outcome in case_data.outcomes),
        "results": True,
    }
    has["blocks"] |= any(bool(o.blocks and o.blocks.imbalance) for o in timed)
    shown = [name for name, is_shown in has.items() if is_shown]
    looks, errors = case_data.looks, quantity("value", form=SCIENTIFIC, close=True)
    data: dict[str, Any] = {
        "columns": [{"title": c.title, "key": c.name, "is_number": c.right} for c in COLUMNS],
        "views": case_data.views,
        "cases": case_data.cases,
        "findings": {name: found.charts for name, found in more.items()},
        "sections": shown,
        "maps": {
            index: error_map_chart.chart(cells, "Error map", _MAP_SIDE)
            for index, outcome in enumerate(case_data.outcomes)
            if isinstance(cells := outcome.error_map, ErrorCells)
        },
        "specs": {  # the charts whose data the script chooses
            "curve": definitions.curve(looks, quantity("value", close=True)),
            "shares": definitions.curve(looks, quantity("value", "linear", PERCENT)),
            "errors": definitions.curve(looks, errors, least=definitions.LEAST_ERRORS),
            "bars": definitions.bars(looks),
            "bars-of-shares": definitions.bars(looks, PERCENT),
            **definitions.of_pages(looks),
        },
        "looks": {name: look._asdict() for name, look in looks.items()},
        "config": definitions.config(),
    }
    texts = {
        "title": html.escape(about[0].sentence),
        "navigation": "".join(f'<a href="#{name}">{_title(name)}</a>' for name in shown),
        "summary": "".join(_summary(number, about) for number in range(len(about))),
        "wrong": _wrong(case_data),
        "findings": "".join(_section(n, f.html, hidden=n not in shown) for n, f in more.items()),
        "version": html.escape(__version__),
        **{f"hide_{name}": "" if name in shown else "hidden" for name in _TITLES},
    }
    page_html, page_css, page_js = (
        (_HERE / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    library = bundle()
    hashes = (hashlib.sha256(script.encode()).digest() for script in (library, page_js))
    return Template(page_html).substitute(
        {name: safe.text(text) for name, text in texts.items()},
        scripts=" ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes),
        style=page_css,
        data=embedded(data),  # all that the script needs
        library=library,
        script=page_js,
    )


def embedded(contents: Any) -> str:
    """JSON of safe text that no HTML parser takes for anything else; a number that is not finite is
    null."""
    text = msgspec.json.encode(safe.data(msgspec.to_builtins(contents))).decode()
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; cached, because it takes seconds to make."""

    def make() -> bytes:
        import vl_convert

        script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        return script.replace("</script", "<\\/script").encode()

    release = importlib.metadata.version("vl-convert-python")
    return str(Cache().get_or_make(f"page bundle {release}", make), "utf-8")


# Text


def _title(name: str) -> str:
    return _TITLES.get(name, name.capitalize())


def _section(name: str, text: str, *, hidden: bool) -> str:
    """A section of findings; its charts, and those of blocks, are the script's."""
    choice = '<div class="controls"><label>Size <select data-state="size"></select></label></div>'
    return (
        f'<section id="{name}"{" hidden" if hidden else ""}><header><h2>{_title(name)}</h2>'
        f'{choice if name == "blocks" else ""}</header>{text}<div class="panels"></div></section>'
    )


def _summary(number: int, summaries: Sequence[Summary]) -> str:
    """What to say of one view; without a script, only the first is shown."""
    about, many = summaries[number], len(summaries)
    warning = f'<p class="warning">{html.escape(about.warning)}</p>' if about.warning else ""
    which = "The most complete" if number == 0 else "One"
    commands = (
        "<details><summary>Command to repeat this</summary>"
        f'<pre tabindex="0">{html.escape(chr(10).join(about.commands))}</pre></details>'
    )
    others = f'<p class="hint">{which} of {many} views; choose another above.</p>'
    return (
        f'<div data-views="{number}"{" hidden" if number else ""}>'
        f"<h1>{html.escape(about.sentence)}</h1>{warning}{others if many > 1 else ''}"
        f"<ul class='facts'>{_definition('Device', about.device) if about.device else ''}"
        f"{_definition('Cases', [about.counts])}{_definition('Date', [about.dates])}</ul>"
        f"{table(about.winners) if about.winners else ''}{commands if about.commands else ''}</div>"
    )


def _definition(name: str, lines: Iterable[str]) -> str:
    """The first line, and the rest below it in small print."""
    first, *others = list(lines) or ["unknown"]
    more = "".join(f"<small>{html.escape(line)}</small>" for line in others)
    return f"<li><b>{name}</b> {html.escape(first)}{more}</li>"


def _wrong(case_data: Found) -> str:
    """Every wrong or failed case with its reason, and a place for its map."""
    return "".join(
        f'<article data-case="{index}" data-views="{case_data.cases[index].view}"><div>'
        f"<h3>{html.escape(outcome.case.label)} "
        f'<span class="status {outcome.status}">{outcome.status}</span></h3>'
        f"<pre>{html.escape(outcome.reason or 'no reason given')}</pre>"
        f"<ul>{''.join(f'<li>{html.escape(note)}</li>' for note in outcome.notes)}</ul>"
        '</div><div class="map"></div></article>'
        for index, outcome in enumerate(case_data.outcomes)
        if outcome.is_broken
    )
