"""Turns records into output: units, tables, formats and text; a view per kind of record.

Must never print, or import anything but `records`, `analysis` and the base modules.
"""
