"""`--page`: a report as a page for browsers."""

USES = ("charts",)
