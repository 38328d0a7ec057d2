"""The version of stacktap, for whatever states by which version it was made: the same whether installed or not."""

from __future__ import annotations

VERSION = "0.1.0"
"""As in `pyproject.toml`; a test compares them."""
