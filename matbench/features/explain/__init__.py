"""`matbench explain`: what limits a kernel, from its machine code, its traffic and counters."""

USES = ("charts", "nvidia_tools")
