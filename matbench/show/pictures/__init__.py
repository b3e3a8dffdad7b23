"""One module per picture: it fills definitions of `charts` (the extra `plots`) into a file.

Must not import `measure`, a backend or `cli`.
"""
