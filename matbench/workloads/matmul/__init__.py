"""The matrix product, which `Workload` describes."""
