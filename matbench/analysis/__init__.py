"""Evaluates records: statistics, ranking, comparisons, occupancy, traffic and bounds.

Pure functions of records. Must not measure or print, and may import only `kernelfile`, `records`
and the base modules.
"""
