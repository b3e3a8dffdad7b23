"""What the core does without, a folder each: a command, its work, and what shows the results.

Must never be needed by the core, or be imported by another package: `cli.registry` names them. Any
of them can be deleted, with those whose `USES` name it.
"""
