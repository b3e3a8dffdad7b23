"""Measures one case on an open device: builds, checks every launch, and times it.

Must never print or draw, or import anything but `kernelfile`, `workloads`, `backends`, `records`,
`analysis` and the base modules.
"""
