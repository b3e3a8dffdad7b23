"""Charts, which Vega draws: their style, and `--picture`, which draws those of any report."""
