"""`matbench diff` and `matbench gate`: recorded results against newer ones."""
