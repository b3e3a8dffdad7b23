"""Functions in Python as programs: loaded, and called with arrays over matbench's memory."""
