"""The application: one file per command, composition only."""

__version__ = "0.1.0"
