"""`matbench page`: record files as a page for browsers."""

USES = ("charts",)
