"""Evaluates records: statistics, ranking, comparisons, occupancy, traffic and bounds.

Pure functions of records. Must never measure or print, or import anything but `kernelfile`,
`records` and the base modules.
"""
