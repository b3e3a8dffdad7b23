"""Why cases were not measured, in words: skips, and the sides of a comparison."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from matbench.errors import readable
from matbench.model import Skip
from matbench.records.comparison import ComparisonRecord
from matbench.records.outcome import Outcome

_LIMITS = {
    "max_threads_per_block": "threads per block",
    "max_shared_bytes_per_block": "bytes of shared memory per block",
    **{f"max_block_{axis}": f"threads in {axis}" for axis in "xyz"},
    **{f"max_grid_{axis}": f"blocks in {axis}" for axis in "xyz"},
    "workspace_bytes": "bytes of workspace",
}


def skip_reason(*skips: Skip) -> str:
    """Why cases were skipped, all of which lack the same; numbers that differ become ranges."""
    kind, needs = skips[0].kind, skips[0].needs
    separator = "," if kind == "limit" else ""
    given = {name: _range([s.given[name] for s in skips], separator) for name in skips[0].given}
    if kind == "condition":
        values = ", ".join(f"{name} = {value}" for name, value in given.items())
        return f"needs {needs} ({values})" if values else f"needs {needs}"
    if kind == "limit":
        asked, allowed = (given.get(name, "other") for name in ("asked", "allowed"))
        allows = "no NVIDIA GPU allows more than" if "device" in given else "the device allows"
        return f"needs {asked} {_LIMITS.get(needs, needs)}; {allows} {allowed}"
    if kind == "requirement":
        device = given.get("device", "another device")
        needed = "CUDA" if needs == "cuda" else needs
        return f"needs {needed}; {'the device' if device.startswith('sm_') else 'this'} is {device}"
    if kind == "timeouts":
        size, option = given.get("size", "another size"), given.get("option", "--timeout")
        return f"not tried after the timeout at {size} (see {option})"
    if kind == "pair":
        return "not compared: the other kernel could not run"
    return f"front matter: {needs}" if kind in ("argument", "mistake") else needs


def _range(values: Sequence[int | float | str], separator: str) -> str:
    """`16`, or `16…64` for numbers that differ."""
    numbers = [value for value in values if not isinstance(value, str)]
    ends = dict.fromkeys((min(numbers), max(numbers)) if numbers else ())
    shown = (f"{n:{separator}}" if isinstance(n, int) else f"{n:.9g}" for n in ends)
    return "…".join(shown) if numbers else str(values[0])


def kind(outcome: Outcome) -> Hashable:
    """Equal for outcomes that were skipped for lack of the same, or failed with the same words."""
    skip = outcome.skip
    if skip is None:
        return outcome.status, outcome.reason
    words = tuple(value for value in skip.given.values() if isinstance(value, str))
    return skip.kind, skip.needs, tuple(skip.given), words


def outcome_reason(*outcomes: Outcome) -> str:
    """The reason of an outcome, or of several of one `kind`; empty if it was measured."""
    skips = [outcome.skip for outcome in outcomes if outcome.skip is not None]
    return readable(skip_reason(*skips)) if skips else outcomes[0].reason or ""


def comparison_reason(*records: ComparisonRecord) -> str:
    """The reason for the verdict of a comparison, or for the lack of one.

    That of several if the outcomes of each side are of one `kind`.
    """
    if records[0].comparison is not None:
        return records[0].comparison.reason
    sides = [record.baseline for record in records], [record.candidate for record in records]
    names = records[0].baseline_name, records[0].candidate_name
    named = [*zip(names, sides, strict=True)]
    named.sort(key=lambda of: of[1][0].status == "measured")  # the cause comes first
    texts = []
    for name, side in named:
        if not side[0].samples_ns and side[0].skip != Skip("pair"):
            reason = outcome_reason(*side)
            told = f"{side[0].status}: {reason}" if reason else "right, not timed"
            texts.append(f"{name}: {told}")
    return "; ".join(dict.fromkeys(texts))
