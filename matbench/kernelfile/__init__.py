"""Kernel files: their front matter, their signature, the sources made of them, and the sweep.

Never touches a device.
"""
