"""How much devices of the same name differ, as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from matbench.analysis.cards import CardSpread
from matbench.model import settings_of
from matbench.show import safe, units
from matbench.show.table import Column, Group, Row, Section, grouped, section
from matbench.show.units import UNKNOWN


def sections(spreads: Sequence[CardSpread], places: dict[str, str]) -> list[Section]:
    """For each name of devices: the medians of its cases on each of them."""
    found = grouped(spreads, lambda each: (each.case.backend, each.case.device))
    return [_section(together, places) for together in found.values()]


def _section(spreads: Sequence[CardSpread], places: dict[str, str]) -> Section:
    case = spreads[0].case
    ids = sorted(
        {device_id for each in spreads for device_id in each.medians_ns},
        key=lambda device_id: places.get(device_id, device_id),
    )
    worst = units.percent(max(each.spread for each in spreads))

    def row(each: CardSpread) -> Row:
        time = units.durations(each.medians_ns.values())
        return Row(
            (
                each.case.problem.size,
                safe.line(each.case.kernel),
                safe.line(settings_of(each.case.params)) or UNKNOWN,
                *(time(each.medians_ns.get(device_id)) for device_id in ids),
                units.percent(each.spread),
            )
        )

    return section(
        heading=(
            f"{safe.line(case.backend)} · {len(ids)} × {safe.line(case.device)}",
            f"the same case on each: medians differ by up to {worst}",
        ),
        columns=(
            Column("size"),
            Column("kernel"),
            Column("parameters", shared=True, drop=2),
            *(
                Column(safe.line(places.get(device_id, device_id)), right=True, drop=1)
                for device_id in ids
            ),
            Column("differ by", right=True),
        ),
        last_title="",
        groups=[Group("", tuple(map(row, spreads)))],
    )
