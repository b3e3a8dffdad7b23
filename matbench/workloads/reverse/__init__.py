"""The reversal."""
