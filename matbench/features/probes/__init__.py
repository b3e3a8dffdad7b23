"""Cases that reveal mistakes, for `check` and `adopt`."""
