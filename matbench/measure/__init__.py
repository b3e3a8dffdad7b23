"""Measuring: a worker process, one case from check to check, the oracle, and the searches.

Never prints or draws, and never imports `show`.
"""
