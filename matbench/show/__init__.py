"""Records as output: units, tables, formats, words and pictures; one view per kind of record.

Must never print, or import anything but `records`, `analysis` and the base modules.
"""
