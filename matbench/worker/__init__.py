"""Measures cases in processes that may die, with deadlines, in rounds, on several devices.

Must never print or draw, or import anything but `bench`, `kernelfile`, `workloads`, `backends`,
`records`, `analysis` and the base modules.
"""
