"""`matbench run --cluster`: a sweep over the workers of a Dask cluster."""
