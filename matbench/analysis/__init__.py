"""What records mean: statistics, ranking, comparisons, occupancy, traffic and bounds.

Pure functions of records; never imports `measure`, `show` or a backend.
"""
