"""A disk that is full."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_after(size_bytes: int) -> Iterator[None]:
    """No file of this process grows beyond this size: what fits is written, the rest refused.

    Python ignores the signal; Intel's OpenCL compiler, once loaded, takes it for a crash.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
