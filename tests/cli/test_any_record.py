"""Whatever is in a record file, no command that reads it ends with a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import any_record
from support.any_record import Plain
from support.browser import needs_page
from support.cli import Matbench

from matbench.errors import UsageError
from matbench.records import reading
from matbench.records.environment import Environment
from matbench.records.outcome import Outcome
from matbench.show import formats


def text(*records: Plain) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@needs_page
@settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 2)
@given(
    environment=any_record.plain(Environment),
    found=st.lists(
        st.one_of([any_record.plain(kind) for kind in (Outcome, *get_args(reading.Finding))]),
        min_size=1,
        max_size=3,
    ),
    timed=st.lists(any_record.timed(), max_size=2),
    fmt=st.sampled_from(formats.FORMATS),
)
def test_any_record_is_shown_or_refused(
    environment: Plain, found: list[Plain], timed: list[Plain], fmt: str, matbench: Matbench,
    tmp_path: Path,
) -> None:  # fmt: skip
    every, charted, others = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    # The same cases with other samples.
    swapped = [one | {"case": other["case"]} for one, other in zip(timed, timed[::-1], strict=True)]
    every.write_text(text(environment, *found, *timed))
    charted.write_text(text(environment, *timed))
    others.write_text(text(environment, *swapped))
    try:
        for file in (every, charted, others):
            reading.read(file)
    except UsageError as error:
        assert "\n" not in str(error)
        return
    page, picture, summary = (tmp_path / name for name in ("p.html", "p.svg", "summary.md"))
    for command in (
        ("report", every, "--format", fmt),
        ("report", every, charted, others, "--fastest"),
        ("diff", charted, others, "--format", fmt, "--summary", summary),
        ("diff", every, others, "--fail-if-slower", "5%"),
        ("page", every, others, "--output", page, "--force"),
        ("plot", charted, "--output", picture),
    ):
        done = matbench(*command, code=None)
        assert done.exit_code in (0, 1, 2, 3), f"{command}: {done.exit_code}\n{done.output}"
