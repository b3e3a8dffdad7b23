"""`matbench new`: a kernel file to start from."""
