"""Records as output: units, tables, formats, words and pictures; one view per kind of record.

Never imports `measure` or a backend, and prints nothing itself.
"""
