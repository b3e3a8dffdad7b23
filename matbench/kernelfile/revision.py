"""Which code has read or translated a kernel file, for keeping the results."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path


@functools.cache
def revision() -> str:
    """The hash of the code of this package and of the modules that it imports."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.parent.glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
