"""What pytest loads, in every run of its users: nothing else is imported until a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from matbench.cli.judge import Judges
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
def _matmul_judges() -> Iterator[Judges]:
    """One for all tests with the same options, which each folder's `conftest.py` may give."""
    from matbench.cli.judge import Judges

    judges = Judges(16)
    yield judges
    judges.close()


@pytest.fixture
def matmul(matmul_options: dict[str, Any], _matmul_judges: Judges) -> Matmul:
    """Checks products of matrices, and compares their speed: docs/pytest.md."""
    from matbench.features.pytest_plugin.fixture import Matmul

    return Matmul(matmul_options, _matmul_judges)


@pytest.fixture(name=_FIXTURE)
def _needs_gpu(matmul: Matmul) -> None:
    matmul.require_gpu()
