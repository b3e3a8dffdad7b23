"""Features that the core does without."""
