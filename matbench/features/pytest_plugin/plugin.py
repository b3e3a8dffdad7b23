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
def _matmuls() -> Iterator[list[Matmul]]:
    """One for all tests with the same options, which each folder's `conftest.py` may give."""
    made: list[Matmul] = []
    yield made
    for one in made:
        one.close()


@pytest.fixture
def matmul(matmul_options: dict[str, Any], _matmuls: list[Matmul]) -> Matmul:
    """Checks products of matrices, and compares their speed: docs/pytest.md."""
    from matbench.features.pytest_plugin.fixture import Matmul

    for one in _matmuls:
        if one.options == matmul_options:
            return one
    _matmuls.append(Matmul(matmul_options))
    return _matmuls[-1]


@pytest.fixture(name=_FIXTURE)
def _needs_gpu(matmul: Matmul) -> None:
    if (reason := matmul.why_no_gpu) is not None:
        pytest.skip(reason)
