"""`matbench blocks`: when and where each block of a launch ran."""

USES = ("charts",)
