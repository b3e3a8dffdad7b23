"""`matbench doctor`: this machine's devices, what keeps it from measuring, and the cache."""
