"""Helpers shared by tests; assertions in them are explained as in tests."""

import os
import sys

# Set before NumPy is imported: with more, BLAS's threads wait for a core that others have.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "pytest" in sys.modules:  # not in a process that has the scripted device
    sys.modules["pytest"].register_assert_rewrite("support.products", "support.terminal")
