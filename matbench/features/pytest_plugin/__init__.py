"""A plugin for pytest: tests that check and compare products of matrices."""

USES = ("check", "gate")
