"""The matrix product."""
