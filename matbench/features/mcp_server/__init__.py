"""The Model Context Protocol for `serve`: agents call it as a tool."""
