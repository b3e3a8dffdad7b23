"""Records as one HTML page: cases and views in `cases`, charts in `charts`, all of it in `document`.

The page needs no network and computes no statistics: what it shows comes ranked and formatted.
"""
