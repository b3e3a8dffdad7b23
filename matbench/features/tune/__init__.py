"""`matbench tune`: searches for a kernel's fastest parameters."""

USES = ("charts",)
