"""One module per picture, drawn by matplotlib (the extra `plots`) into a file.

Must not import `measure`, a backend or `cli`.
"""
