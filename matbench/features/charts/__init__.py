"""Charts, which Vega draws, and their style, for pages and pictures; `matbench run --error-map`."""
