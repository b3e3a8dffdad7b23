"""The dot product."""
