"""Charts as Vega-Lite: their definitions, and the one style of pages and pictures.

A page fills the definitions with data in its script, a picture in Python (`filling`).
"""
