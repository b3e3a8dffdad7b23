"""The sum of cubes."""
