"""`matbench.verify`, for programs: whether an array is the product of others, without a kernel."""
