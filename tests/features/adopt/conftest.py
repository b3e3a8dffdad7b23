"""Checks of adopted kernels at their smallest sizes, which take most of the time."""

from __future__ import annotations

import pytest

from matbench.features.adopt import search


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MOST_OPERATIONS", 2 * 9**3)
