"""Worker processes that end with their test, or with the last one of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from matbench.worker.process import WorkerProcess


def made(*, leads: bool = False) -> Iterator[WorkerProcess]:
    process = WorkerProcess(leads=leads)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerProcess]:
    """Its process is replaced whenever a test has ended it."""
    yield from made()


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    yield from made()


@pytest.fixture
def leader() -> Iterator[WorkerProcess]:
    """The first of a group, which ends with it."""
    yield from made(leads=True)
