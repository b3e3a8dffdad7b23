"""What was found, typed: the schema of all records, and the files that hold them.

Never computes a statistic, and imports nothing but the modules at the top of `matbench`.
"""
