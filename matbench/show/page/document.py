"""The page as one HTML document: text, data, styles and scripts, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.metadata
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from matbench import __version__
from matbench.analysis import pareto
from matbench.cache import Cache
from matbench.errors import UsageError
from matbench.records import encoding
from matbench.records.environment import Environment
from matbench.records.outcome import ErrorCells, Outcome
from matbench.records.reading import Finding
from matbench.show import safe
from matbench.show.charts import definitions, error_map, style
from matbench.show.charts.definitions import PERCENT, SCIENTIFIC, Spec, quantity
from matbench.show.page import cases, samples, summary
from matbench.show.page import findings as _findings
from matbench.show.page.cases import COLUMNS, Found
from matbench.show.page.findings import Chart, Findings, table
from matbench.show.page.summary import Summary
from matbench.show.pictures import files

_HERE = Path(__file__).parent
_MAP_SIDE = 250  # pixels
#: What the script tag of an HTML document may not hold.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_TITLES = {
    "summary": "Summary", "speed": "Speed", "error": "Error", "roofline": "Roofline",
    "samples": "Samples", "verdicts": "Verdicts", "blocks": "Blocks",
    "arithmetic": "Arithmetic", "wrong": "Wrong and failed",
    "results": "All results",
}  # fmt: skip


def require(path: Path, *, force: bool) -> None:
    """`UsageError` if no page can be written to `path`; ask before anything is measured for it."""
    files.require_file(path, (".html", ".htm"), wrong_suffix="a page's name ends in .html")
    if path.exists() and not force:
        raise UsageError(f"{path}: exists; --force replaces it")
    files.require_libraries(path, "pages")


def write(path: Path, text: str) -> None:
    """Replace the file as a whole, or leave it as it was."""
    files.write(path, text.encode())


def page(
    outcomes: Sequence[Outcome],
    environments: Sequence[Environment],
    findings: Iterable[tuple[Finding, Sequence[Outcome]]] = (),
) -> str:
    """The whole document; the same records give the same bytes."""
    kept = [encoding.finite(outcome) for outcome in outcomes]
    devices = [device for environment in environments for device in environment.devices]
    more, about = _findings.of(findings), summary.of(kept, environments)
    found = cases.of(kept, devices, more.limits)
    taken = samples.of(found.outcomes)
    shown = ["summary", *_sections(found, any(taken), more), "results"]
    scripts = (bundle(), (_HERE / "page.js").read_text(encoding="utf-8"))
    template = Template((_HERE / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        policy=_policy(scripts),
        title=html.escape(about.sentence),
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
        navigation="".join(f'<a href="#{name}">{_TITLES[name]}</a>' for name in shown),
        summary=_summary(about),
        wrong=_wrong(found.outcomes),
        verdicts=more.verdicts,
        blocks=more.blocks,
        arithmetic=more.arithmetic,
        **{f"hide_{name}": "" if name in shown else "hidden" for name in _TITLES},
        version=html.escape(__version__),
        data=_data(found, taken, more, shown),
        library=scripts[0],
        script=scripts[1],
    )


def _sections(found: Found, has_samples: bool, more: Findings) -> list[str]:
    """The sections between summary and results that have something to show."""
    timed = [case for case in found.cases if case.rate is not None]
    has = {
        "speed": bool(timed),
        "error": any(case.error for case in timed),
        "roofline": any(view.roofline for view in found.views),
        "samples": has_samples,
        "verdicts": bool(more.verdicts or more.verdict_charts),
        "blocks": bool(more.blocks) or any(case.imbalance is not None for case in timed),
        "arithmetic": bool(more.arithmetic),
        "wrong": any(case.status in ("wrong", "failed") for case in found.cases),
    }
    return [name for name in _TITLES if has.get(name)]


def _data(found: Found, taken: list[list[samples.Series]], more: Findings, shown: list[str]) -> str:
    """All that the script needs, harmless within a script tag."""
    problems: dict[tuple[int, str], list[tuple[int, Outcome]]] = {}
    for index, (case, outcome) in enumerate(zip(found.cases, found.outcomes, strict=True)):
        problems.setdefault((case.view, case.size), []).append((index, outcome))
    contents: dict[str, Any] = {
        "columns": COLUMNS,
        "views": found.views,
        "cases": found.cases,
        "samples": taken,
        "front": sorted(index for group in problems.values() for index in pareto.front(group)),
        "verdicts": more.verdict_charts,
        "blocks": more.block_charts,
        "sections": shown,
        "maps": _maps(found.outcomes),
        "specs": _specs(found),
        "looks": {name: look._asdict() for name, look in found.looks.items()},
        "config": style.config(),
    }
    return embedded(contents)


def _specs(found: Found) -> dict[str, Spec]:
    """The charts whose data the script chooses."""
    looks = found.looks
    return {
        "curve": definitions.curve(looks, quantity("value", close=True)),
        "shares": definitions.curve(looks, quantity("value", "linear", PERCENT)),
        "errors": definitions.curve(
            looks, quantity("value", form=SCIENTIFIC, close=True), least=definitions.LEAST_ERRORS
        ),
        "bars": definitions.bars(looks),
        "bars-beside": definitions.bars(looks, beside=True),
        "bars-of-shares": definitions.bars(looks, PERCENT),
        "bars-of-shares-beside": definitions.bars(looks, PERCENT, beside=True),
        "scatter": definitions.scatter(looks),
        "strip": definitions.strip(looks),
        "ecdf": definitions.ecdf(),
        "course": definitions.course(),
        "condition": definitions.condition(),
    }


def embedded(contents: Any) -> str:
    """JSON that no HTML parser takes for anything else."""
    plain = msgspec.to_builtins(contents)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub("[<>&\u2028\u2029]", lambda found: _UNSAFE[found[0]], text)


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; cached, because it takes seconds to make."""

    def make() -> bytes:
        import vl_convert

        script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        return script.replace("</script", "<\\/script").encode()

    release = importlib.metadata.version("vl-convert-python")
    return str(Cache().get_or_make(f"page bundle {release}", make), "utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Only these scripts run, and nothing is fetched or sent."""
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


# Text


def _summary(about: Summary) -> str:
    warning = f'<p class="warning">{html.escape(about.warning)}</p>' if about.warning else ""
    devices = "".join(_definition("Device", lines) for lines in about.devices)
    return (
        f"<h1>{html.escape(about.sentence)}</h1>{warning}"
        f"<ul class='facts'>{devices}{_definition('Cases', [about.counts])}"
        f"{_definition('Date', [about.dates])}</ul>"
        f"{_winners(about)}{_commands(about)}"
    )


def _definition(name: str, lines: Iterable[str]) -> str:
    """The first line, and the rest below it in small print."""
    first, *others = list(lines) or ["unknown"]
    more = "".join(f"<small>{html.escape(line)}</small>" for line in others)
    return f"<li><b>{name}</b> {html.escape(first)}{more}</li>"


def _winners(about: Summary) -> str:
    if len(about.winners) < 2:
        return ""
    titles = ("size", "fastest kernel", "parameters", "time", "rate", "× cuBLAS", "max rel err")
    used = [i for i in range(len(titles)) if any(winner[i] for winner in about.winners)]
    rows = [[winner[i] for i in used] for winner in about.winners]
    return table([titles[i] for i in used], rows, "The fastest kernel of each size")


def _commands(about: Summary) -> str:
    """The command of each run, to repeat it."""
    if not about.commands:
        return ""
    lines = "\n".join(about.commands)
    return (
        "<details><summary>Command to repeat this</summary>"
        f'<pre tabindex="0">{html.escape(lines)}</pre></details>'
    )


def _maps(outcomes: Iterable[Outcome]) -> dict[int, Chart]:
    """The error map of each case that has one."""
    return {
        index: Chart(
            "Error map", " · ".join(error_map.notes(found)), error_map.spec(found, _MAP_SIDE)
        )
        for index, outcome in enumerate(outcomes)
        if isinstance(found := outcome.error_map, ErrorCells)
    }


def _wrong(outcomes: Iterable[Outcome]) -> str:
    """Every wrong or failed case with its reason."""
    parts = []
    for index, outcome in enumerate(outcomes):
        if outcome.is_broken:
            notes = "".join(f"<li>{html.escape(safe.lines(note))}</li>" for note in outcome.notes)
            has_map = isinstance(outcome.error_map, ErrorCells)
            parts.append(
                f'<article data-case="{index}"><div>'
                f"<h3>{html.escape(safe.line(outcome.case.label))} "
                f'<span class="status {outcome.status}">{outcome.status}</span></h3>'
                f"<pre>{html.escape(safe.lines(outcome.reason or 'no reason given'))}</pre>"
                + (f"<ul>{notes}</ul>" if notes else "")
                + ('</div><div class="map"></div></article>' if has_map else "</div></article>")
            )
    return "".join(parts)
