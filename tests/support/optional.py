"""Values that may be None, where a test knows that they are not; parameters that may wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def present(value: T | None) -> T:
    assert value is not None
    return value


def half(every: Iterable[Any]) -> list[Any]:
    """A parameter for each; every other one is among the long tests."""
    return [
        pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.long)
        if number % 2
        else each
        for number, each in enumerate(every)
    ]


def some(every: Iterable[T], *at_once: T) -> list[Any]:
    """A parameter for each; all but those that are needed at once are among the long tests."""
    return [
        each if each in at_once else pytest.param(each, marks=pytest.mark.long) for each in every
    ]
