"""Kernel files: front matter, signatures, expressions, the sources made of them, and the sweep.

Must never touch a device, or import anything but the base modules.
"""
