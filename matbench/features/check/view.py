"""Probes of awkward sizes: a row per size and inputs, a column per set of parameters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from matbench import workloads
from matbench.analysis.ranking import STATUSES
from matbench.features.check.probe import Need, Probe
from matbench.model import DeviceInfo, settings_of
from matbench.show.reasons import kind, outcome_reason
from matbench.show.table import Column, grouped, without_numbers
from matbench.show.terminal import plain_table
from matbench.show.units import UNKNOWN

_WORDS = {"measured": "right", "wrong": "WRONG", "failed": "FAILED", "skipped": UNKNOWN}


def renderables(
    kernel_name: str, device: DeviceInfo, probes: Sequence[Probe], needs: Sequence[Need] = ()
) -> list[RenderableType]:
    """The table; below it the errors, which claims are needed, and how many probes passed."""
    shapes: dict[tuple[str, str, str], dict[str, str]] = {}
    # Reasons that differ only in their numbers are shown once, with a count of the others.
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for probe in probes:
        outcome, problem = probe.outcome, probe.outcome.case.problem
        label = settings_of(outcome.case.params) or kernel_name
        key = problem.size, problem.inputs, probe.purpose
        shapes.setdefault(key, {})[label] = _WORDS[outcome.status]
        if outcome.reason and outcome.status != "skipped":
            place = f"{label} at {problem.size}, {problem.inputs}"
            alike = outcome.status, label, without_numbers(outcome.reason)
            reasons.setdefault(alike, []).append(f"{place}: {outcome.reason}")
    labels = list(dict.fromkeys(label for shape in shapes.values() for label in shape))
    workload = workloads.workload_of(probes[0].outcome.case.problem) if probes else workloads.MATMUL
    titles = "×".join(workload.dimensions), "inputs", "probes", *labels
    table = plain_table(*map(Column, titles))
    for column in table.columns[3:]:
        column.no_wrap = True
    for shape, by_label in shapes.items():
        words = [by_label.get(label, "") for label in labels]
        marks = [Text(word, style="bold red" if word.isupper() else "") for word in words]
        table.add_row(*map(Text, shape), *marks)
    wrong = [
        Text(texts[0] + (f" … and {len(texts) - 1} more like it" if len(texts) > 1 else ""))
        for alike, texts in sorted(reasons.items(), key=lambda item: STATUSES.index(item[0][0]))
    ]
    claims = [Text(f"{need.declared}: {need.finding}") for need in needs]
    summary = Text(_summary(kernel_name, device, probes), style="bold")
    return [table, Text(), *wrong, *claims, summary]


def _summary(kernel_name: str, device: DeviceInfo, probes: Sequence[Probe]) -> str:
    """How many of the probes that could run passed, and why others could not run."""
    outcomes = [probe.outcome for probe in probes]
    skipped = [outcome for outcome in outcomes if outcome.status == "skipped"]
    why = "; ".join(outcome_reason(*alike) for alike in grouped(skipped, kind).values())
    probed = len(outcomes) - len(skipped)
    if not probed:
        return f"{kernel_name}: no probe could run on {device.label}" + (f": {why}" if why else "")
    right = sum(outcome.status == "measured" for outcome in outcomes)
    text = f"{kernel_name} passed {right} of {probed} probes on {device.label}"
    return f"{text}, {len(skipped)} skipped: {why}" if skipped else text
