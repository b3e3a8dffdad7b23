"""A magic for notebooks: `%load_ext matbench`, then `%%matbench` above a kernel."""

USES = ("charts", "page")
