"""`matbench grade`: how a kernel computes: its errors, their growth, and its order of additions."""

USES = ("charts",)
