"""Helpers shared by tests; assertions in them are explained as in tests."""

import pytest

pytest.register_assert_rewrite("support.products", "support.terminal", "support.workloads")
