"""Helpers shared by tests; assertions in them are explained as in tests."""

import os
import sys

# Products in tests are small, and many processes compute beside each other: BLAS's threads would
# spend most of their time waiting for a core. NumPy asks when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "pytest" in sys.modules:  # not in a process that has the scripted device
    sys.modules["pytest"].register_assert_rewrite("support.products", "support.terminal")
