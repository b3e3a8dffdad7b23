"""Shared fixture: fewer checks for functions whose calls are found out."""

from __future__ import annotations

import pytest

from matbench.features.probes import cases


@pytest.fixture
def few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the sizes at which a call must be right, which take most of the time."""
    probed = cases.probed
    monkeypatch.setattr(
        cases, "probed", lambda *given: [p for p in probed(*given) if not p[1].skip][::5]
    )
