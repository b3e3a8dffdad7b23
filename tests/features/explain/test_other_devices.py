"""Architectures by family, chip and compute capability."""

from __future__ import annotations

import pytest

from matbench.errors import UsageError
from matbench.features.explain.other_devices import named


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("g80", (1, 0)), ("fermi", (2, 0)), ("kepler", (3, 0)),
        ("gk110", (3, 5)), ("3.7", (3, 7)), ("maxwell", (5, 0)), ("Pascal", (6, 0)),
        ("volta", (7, 0)), ("sm_75", (7, 5)), ("ampere", (8, 0)), ("86", (8, 6)), ("ada", (8, 9)),
        ("hopper", (9, 0)), ("blackwell", (10, 0)), ("sm_120", (12, 0)),
    ],
)  # fmt: skip
def test_an_architecture_goes_by_family_chip_and_capability(
    name: str, capability: tuple[int, int]
) -> None:
    assert named(name).compute_capability == capability


@pytest.mark.parametrize(("name", "hint"), [("keppler", "'kepler'"), ("9.9", "known: g80")])
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        named(name)
