"""Evaluates records: statistics, ranking, drift, block times and limits.

Pure functions of records. Must never measure or print, or import anything but `records`,
`workloads` and the base modules.
"""
