"""Kernel files: their front matter, their signature, the sources made from them, and the sweep.

Imports only the modules at the top of `matbench`, and never touches a device.
"""
