"""`matbench plot`: record files as a picture."""

USES = ("charts",)
