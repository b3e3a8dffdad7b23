"""`matbench doctor`: what keeps this machine from measuring, and how to fix it."""
