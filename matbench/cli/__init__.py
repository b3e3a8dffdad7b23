"""The core's commands, one module each, and `judge`, the same for programs: they read options, call
other packages, print and exit.

Must never compute anything, or import anything but `kernelfile`, `records`, `analysis`,
`workloads`, `backends`, `bench`, `worker` and `show`.
"""

from matbench.cli.app import main

__all__ = ["main"]
