"""Reads files in the forms of other evaluators as kernels, for every command that takes a file."""
