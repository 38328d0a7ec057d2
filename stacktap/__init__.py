"""The application: one file per command, composition only."""

from results.version import VERSION

__version__ = VERSION
