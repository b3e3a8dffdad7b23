"""The schema of all records, and the files that hold them.

Must never compute a statistic, or import anything but the base modules.
"""

#: The types of records by their tags, imported when a file has one; `cli.registry` adds features'.
KINDS = {
    "environment": "matbench.records.environment:Environment",
    "outcome": "matbench.records.outcome:Outcome",
}
