"""`matbench check`: probes a kernel with awkward sizes and inputs, its claims, and sanitizers."""

USES = ("nvidia_tools", "probes")
