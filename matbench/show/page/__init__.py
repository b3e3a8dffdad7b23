"""Records as one HTML page: `document` makes it, the other modules its parts.

The page needs no network and computes no statistics: what it shows comes ranked and formatted.
"""
