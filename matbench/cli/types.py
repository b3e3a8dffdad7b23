"""Types of option values: what is accepted, and how it is converted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem


class Seed(click.IntRange):
    """A seed that NumPy accepts."""

    def __init__(self) -> None:
        super().__init__(0, 2**63 - 1)
        self.name = "integer"


class Seconds(click.FloatRange):
    """More than zero, and at most a day."""

    def __init__(self) -> None:
        super().__init__(0, 86400, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value!r} is not a number", param, ctx)
        return seconds


class ListOf(click.ParamType[tuple[Any, ...]]):
    """Some of these words, separated by commas; none if the text is empty."""

    name = "list"

    def __init__(self, choices: Iterable[str]) -> None:
        self.choices = tuple(choices)

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        words = tuple(dict.fromkeys(word.strip() for word in value.split(",") if value.strip()))
        for word in words:
            if word not in self.choices:
                known = ", ".join(map(repr, self.choices))
                self.fail(f"{word!r} is not one of {known}", param, ctx)
        return words

    def shell_complete(self, _ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + choice)
            for choice in self.choices
            if choice.startswith(last)
        ]


class Share(click.ParamType[float]):
    """A share written as `5%` or `0.05`."""

    name = "share"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        text = str(value).strip()
        number = text.removesuffix("%")
        try:
            share = float(number) / (100 if number != text else 1)
        except ValueError:
            share = -1
        if not 0 <= share < 10:
            self.fail(f"{value!r}: write a share such as 5% or 0.05", param, ctx)
        return share
