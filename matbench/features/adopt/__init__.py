"""`matbench adopt`: finds out how a foreign kernel is called."""

USES = ("probes",)
