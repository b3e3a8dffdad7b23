"""Charts as Vega-Lite specifications, and the one style of pages and pictures.

Vega computes axes, legends and the places of all text. A chart without data gets them from a page's
script.
"""
