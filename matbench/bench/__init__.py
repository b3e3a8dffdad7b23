"""Measuring: the worker process, the checks and timing of one case, the oracle, the judge.

Must never print or draw, or import anything but `kernelfile`, `backends`, `records`, `analysis`
and the base modules.
"""
