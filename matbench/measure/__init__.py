"""Measuring: the worker process, the checks and timing of one case, the oracle, the tuning search.

Must not print or draw, and may import only `kernelfile`, `backends`, `records`, `analysis` and the
base modules.
"""
