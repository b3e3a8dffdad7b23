"""Helpers that tests share; those that assert explain their failures as tests do."""

import pytest

pytest.register_assert_rewrite("support.products", "support.terminal", "support.workloads")
