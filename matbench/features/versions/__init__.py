"""`matbench compare --against`: a kernel and its file as of a git revision; all its versions."""
