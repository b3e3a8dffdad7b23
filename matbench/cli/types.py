"""Types of option values: what is accepted, and how it is converted."""

from __future__ import annotations

from typing import Any

import click


class Seed(click.IntRange):
    """A seed that NumPy accepts."""

    def __init__(self) -> None:
        super().__init__(0, 2**63 - 1)


class Seconds(click.FloatRange):
    """More than zero, and at most a day."""

    def __init__(self) -> None:
        super().__init__(0, 86400, min_open=True)

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = float(super().convert(value, param, ctx))
        if seconds != seconds:
            self.fail(f"{value!r} is not a number", param, ctx)
        return seconds


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


class Format(click.ParamType[str]):
    """A choice whose values are imported only when one is given, for a fast start."""

    name = "format"

    def __init__(self, *more: str) -> None:
        self.more = more

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from matbench.show.formats import FORMATS

        known = (*FORMATS, *self.more)
        if value not in known:
            self.fail(f"{value!r}: not one of {', '.join(known)}", param, ctx)
        return str(value)
