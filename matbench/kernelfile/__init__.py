"""Kernel files: front matter, signatures, expressions, generated sources, and the sweep.

Must never touch a device, or import anything but `workloads` and the base modules.
"""
