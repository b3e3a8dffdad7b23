"""What pytest loads, in every run of its users: nothing else is imported until a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from matbench.features.pytest_plugin.fixture import Matmul

_MARKER, _FIXTURE = "matmul_gpu", "_matmul_gpu"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARKER}: needs a GPU that matbench can use, and is skipped without one"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker(_MARKER):
            item.fixturenames.insert(0, _FIXTURE)


@pytest.fixture(scope="session")
def matmul_options() -> dict[str, Any]:
    """Arguments of `matbench.Judge` for `matmul`, such as `backend`, `device` and `timeout`; a
    fixture of this name in `conftest.py` gives others."""
    return {}


@pytest.fixture(scope="session")
def matmul(matmul_options: dict[str, Any]) -> Iterator[Matmul]:
    """Checks products of matrices, and compares their speed: docs/pytest.md."""
    from matbench.features.pytest_plugin.fixture import Matmul

    with Matmul(matmul_options) as made:
        yield made


@pytest.fixture(scope="session", name=_FIXTURE)
def _needs_gpu(matmul: Matmul) -> None:
    if (reason := matmul.why_no_gpu) is not None:
        pytest.skip(reason)
