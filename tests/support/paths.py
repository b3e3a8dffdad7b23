"""Paths in the project."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
BAD_KERNELS = TESTS / "measure" / "bad_kernels"
