"""What is asked of a kernel, against what its table says that it computes."""

from __future__ import annotations

from typing import Any

import pytest
from support import toml
from support.golden import TableRegression

from matbench.errors import UsageError
from matbench.kernelfile.contract import Contract
from matbench.model import Kernel, LaunchRules

ALL = ("A", "B", "C", "M", "N", "K")


def kernel(*where: str, args: tuple[str, ...] = ALL, **front: Any) -> Kernel:
    rules = LaunchRules(block=(1,), grid=(1,), where=where)
    return Kernel(name="mine", launch=rules, args=args, **front)


def told(question: str) -> str:
    """How a kernel breaches a contract: what is said of it in TOML, and what is `asked`."""
    found = toml.read(question)
    asked, where = Contract(where=tuple(found.pop("asked", ()))), found.pop("where", ())
    values = {name: tuple(one) if isinstance(one, list) else one for name, one in found.items()}
    return asked.breach(kernel(*where, sweep={"TILE": (8, 16)}, **values)) or "nothing"


def test_breaches(table_regression: TableRegression) -> None:
    """Sizes that a kernel is not passed are no mistake, and those asked for may be fewer."""
    table_regression("breaches.txt", told)


def test_keys_of_front_matter_are_asked_for_too() -> None:
    pinned = Contract(beta=1.0).pinned(
        {"transpose": "NT", "precision": "tf32", "launch": {"where": ["N % 4 == 0"], "block": [8]}}
    )
    assert pinned == Contract(transpose="NT", beta=1.0, where=("N % 4 == 0",))


def test_what_is_no_contract() -> None:
    with pytest.raises(UsageError, match="contract: Expected `object`"):
        Contract.of(7)  # type: ignore[arg-type]


def test_conditions_may_be_one_text() -> None:
    asked = Contract.of({"where": "M % 4 == 0, max(N, K) > 1"})
    assert asked.where == ("M % 4 == 0", "max(N, K) > 1")
