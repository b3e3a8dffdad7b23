"""Turns records into output: units, tables, formats and text; a view per kind of record.

Must never print, or import anything but `records`, `workloads`, `analysis` and the base modules.
"""
