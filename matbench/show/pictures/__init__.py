"""One picture a module, each drawn by matplotlib (the extra `plots`) into a file.

Never imports what only commands may: `measure`, a backend, `cli`.
"""
