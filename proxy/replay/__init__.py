"""Serving a recording as the server it was."""
