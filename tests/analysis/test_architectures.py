"""The table of architectures."""

from __future__ import annotations

from matbench.analysis import architectures
from matbench.analysis.architectures import ARCHITECTURES


def test_a_device_is_found_by_its_capability() -> None:
    hopper = architectures.of_capability((9, 0))
    assert hopper is not None
    assert hopper.name == "Hopper 9.0"
    assert architectures.of_capability((99, 0)) is None
    assert architectures.of_capability(None) is None


def test_the_table_agrees_with_itself() -> None:
    capabilities = [a.compute_capability for a in ARCHITECTURES]
    assert capabilities == sorted(set(capabilities))
    for a in ARCHITECTURES:
        assert a.threads % 32 == 0
        assert a.registers % a.partitions == 0
        assert a.shared_bytes_per_block <= a.largest_shared_bytes
        assert a.largest_shared_bytes + a.reserved_shared_bytes <= a.shared_bytes
        assert a.registers_per_block <= a.registers
        assert a.threads_per_block <= a.threads
