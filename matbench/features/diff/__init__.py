"""`matbench diff`: recorded results against newer ones; the gate for CI, of `compare`, too."""
