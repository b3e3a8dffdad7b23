"""Turns records into output: units, tables, formats, text and pictures; a view per kind of record.

Must not print, and may import only `records`, `analysis` and the base modules.
"""
