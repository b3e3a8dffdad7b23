"""`--picture`: all charts of some records in one file."""

from __future__ import annotations

from pathlib import Path

from matbench.analysis import gathering
from matbench.cli import registry
from matbench.errors import UsageError
from matbench.features.charts import cases, drawing, outcomes
from matbench.records.reading import RecordSet


def write(path: Path, found: RecordSet) -> None:
    """Draw the charts of each kind of records, then where C is wrong.

    Outcomes that a comparison, a search … is about are in its charts. `UsageError` if there is
    nothing to draw, or if the file cannot be written.
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
    if not charts:
        raise UsageError(f"{path}: nothing to draw: no chart shows what these records have")
    seen = [record.case for record in (*named, *found.outcomes, *(f for f, _ in found.findings))
            if hasattr(record, "case")]  # fmt: skip
    shown = {outcome.case.device_id: outcome.case.device for outcome in named}
    title = " / ".join(
        dict.fromkeys(shown.get(case.device_id, case.device) or "no device" for case in seen)
    )
    drawing.draw(path, charts, title, outcomes.remarks(ranked))
