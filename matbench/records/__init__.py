"""The schema of all records, and the files that hold them.

Must not compute statistics, and may import only the base modules.
"""
