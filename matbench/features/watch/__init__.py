"""`matbench watch`: measures a kernel file whenever it is saved."""

USES = ("charts",)
