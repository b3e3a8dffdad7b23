"""Worker processes that end with their test, or with the last one of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from matbench.worker.process import WorkerProcess


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerProcess]:
    """Its process is replaced whenever a test has ended it."""
    made = WorkerProcess()
    yield made
    made.kill()


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.kill()


@pytest.fixture
def leader() -> Iterator[WorkerProcess]:
    """The first of a group, which ends with it."""
    made = WorkerProcess(leads=True)
    yield made
    made.kill()
