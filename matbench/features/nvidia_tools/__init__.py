"""One case under one of NVIDIA's tools, for `check` and `explain`."""
