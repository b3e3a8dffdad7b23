"""`matbench watch`: measures a kernel file whenever it is saved."""
