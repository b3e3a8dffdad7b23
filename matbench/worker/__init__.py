"""Runs cases on devices: in processes that may die, in rounds, on several devices at once."""
