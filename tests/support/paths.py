"""Paths in the project."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
KERNELS = TESTS / "kernels"
BAD_KERNELS = KERNELS / "bad"
FUNCTIONS = KERNELS / "functions"
FOREIGN = KERNELS / "foreign"
#: What Python runs first if PYTHONPATH has it.
STARTUP = TESTS / "support" / "startup"


def output_of(name: str) -> str:
    """What a tool printed: a file of tests/outputs."""
    return (TESTS / "outputs" / name).read_text(encoding="utf-8")
