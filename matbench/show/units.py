"""Number formats: times, shares, errors, rates and counts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard

UNKNOWN = "–"

Formatter = Callable[[float | None], str]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PREFIXES = ("", "k", "M", "G", "T", "P")


def is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def durations(times_ns: Iterable[float | None]) -> Formatter:
    """One unit and one number of decimals for all: 3 or 4 significant digits of the smallest.

    The smallest unit is the microsecond, so that small sizes share a unit.
    """
    known = [time for time in times_ns if is_known(time) and time > 0]
    if not known:
        return lambda _: UNKNOWN
    least = min(known)
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
    scale, unit = next((pair for pair in units if least >= pair[0]), units[-1])
    decimals = _decimals(least / scale, 4 if max(known) < 100 * least else 3)
    if least < scale:
        # To a picosecond at most: a record may hold any number.
        decimals = 2 - math.floor(math.log10(max(least, 0.001) / scale))
    return lambda time: f"{time / scale:.{decimals}f} {unit}" if is_known(time) else UNKNOWN


def duration(time_ns: float | None) -> str:
    return durations([time_ns])(time_ns)


def _decimals(value: float, digits: int) -> int:
    """The decimals that give `value`, at least 1, so many significant digits."""
    return max(0, digits - len(str(int(value))))


def percent(part: float | None) -> str:
    """A share at a glance: `0.3%`, `31%`, `1,200%`."""
    if not is_known(part):
        return UNKNOWN
    if 0 < part < 0.0005:
        return "<0.1%"
    return f"{part:.1%}" if part < 0.1 else f"{part:,.0%}"


def share(part: float | None) -> str:
    """A share to a tenth of a percent, to be compared with 100%."""
    return f"{part:.1%}" if is_known(part) else UNKNOWN


def times(factor: float | None) -> str:
    """`2.00×`."""
    if not is_known(factor):
        return UNKNOWN
    if factor < 100:
        return f"{factor:.2f}×"
    return f"{factor:,.0f}×" if factor < 1e6 else f"{factor:.1e}×"


def speedup(ratio: float | None) -> str:
    """A ratio of times in words, below 1 faster: `14.7 × faster`, `1.02 × slower`, `1.000 ×`."""
    return " ".join(_speedup(ratio)).rstrip()


def speedups(interval: tuple[float, float] | None) -> str:
    """Two ratios in the same words: `14.5 to 14.9 × faster`, `1.01 × faster to 1.02 × slower`."""
    if interval is None:
        return UNKNOWN
    ends = [_speedup(ratio) for ratio in interval]
    words = dict.fromkeys(word for _, word in ends)
    if len(words) > 1 or ends[0] == ends[1]:
        return " to ".join(dict.fromkeys(" ".join(end).rstrip() for end in ends))
    # The smaller factor first where both ends are faster.
    low, high = (factor for factor, _ in (ends[::-1] if "faster" in words else ends))
    return " ".join([low.removesuffix(" ×"), "to", high, *words]).rstrip()


def _speedup(ratio: float | None) -> tuple[str, str]:
    """The factor and the word for it."""
    if not is_known(ratio) or ratio < 0:
        return UNKNOWN, ""
    factor = max(ratio, 1 / ratio) if ratio else math.inf
    if factor == math.inf:
        return "∞ ×", "faster"
    shown = f"{factor:.1e}"
    if factor < 1e6:
        shown = f"{factor:,.{3 if factor < 1.01 else _decimals(factor, 3)}f}"
    return f"{shown} ×", "faster" if ratio < 1 else "slower" if ratio > 1 else ""


def error(value: float | None) -> str:
    """A relative error: `2.2e-6`."""
    if not is_known(value):
        return UNKNOWN
    return re.sub(r"e([+-])0*(\d+)$", r"e\1\2", f"{value:.1e}").replace("e+", "e") if value else "0"


def count(value: float | None) -> str:
    """A whole number: `1,048,576`."""
    return f"{value:,.0f}" if is_known(value) else UNKNOWN


def superscript(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)


def number(value: float | None, digits: int = 3) -> str:
    """That many significant digits; whole digits in full below a billion: `0.0123`, `12,345`."""
    if not is_known(value):
        return UNKNOWN
    if not value:
        return "0"
    size = abs(value)
    if not 1e-6 <= size < 1e9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"


def bytes_(value: float | None) -> str:
    return rates([value], "B")(value)


def bandwidth(bytes_per_s: float | None) -> str:
    return rates([bytes_per_s], "B/s")(bytes_per_s)


def rates(values: Iterable[float | None], unit: str) -> Formatter:
    """All in the unit of the largest, to three significant digits: `51.4 TFLOP/s`, `41.2 kB`."""
    most = max(filter(is_known, values), default=0.0)
    power = min(int(math.log10(most) // 3) if most >= 1 else 0, len(_PREFIXES) - 1)
    return lambda value: (
        f"{number(value / 1000**power)} {_PREFIXES[power]}{unit}" if is_known(value) else UNKNOWN
    )


def extremes(values: Sequence[float], form: Callable[[float], str]) -> str:
    """The smallest and the largest, or one if they look the same: `118`, `9.9 to 10.1`."""
    return " to ".join(dict.fromkeys(map(form, (min(values), max(values)))))


def rate_column(per_s: Iterable[float | None], unit: str) -> tuple[str, Formatter]:
    """The title of a column of rates, T or G by their median, and the format of its numbers."""
    known = sorted(rate for rate in per_s if is_known(rate) and rate > 0)
    tera = bool(known) and known[len(known) // 2] >= 1e12
    scale = 1e12 if tera else 1e9
    least = min(known, default=scale) / scale
    decimals = min(3, _decimals(least, 3) if least >= 1 else 3)
    title = ("T" if tera else "G") + unit
    return title, lambda rate: f"{rate / scale:.{decimals}f}" if is_known(rate) else UNKNOWN
