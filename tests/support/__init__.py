"""Helpers shared by tests; assertions in them are explained as in tests."""

import sys

if "pytest" in sys.modules:  # not in a process that has the scripted device
    sys.modules["pytest"].register_assert_rewrite("support.products", "support.terminal")
