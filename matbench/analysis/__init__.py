"""Evaluates records: statistics, ranking, patterns of samples, block times and limits.

Pure functions of records. Must never measure or print, or import anything but `records` and the
base modules.
"""
