"""`matbench history`: which commit made a kernel slower."""
