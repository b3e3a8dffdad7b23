"""The schema of all records, and the files that hold them.

Must never compute a statistic, or import anything but the base modules.
"""
