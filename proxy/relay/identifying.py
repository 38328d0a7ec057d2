"""How requests are marked by which stacktap itself finds out what a server is: they are no client's traffic."""

from __future__ import annotations

USER_AGENT = "stacktap-identify"
"""The User-Agent of these requests."""


def is_identifying(user_agent: str) -> bool:
    """Whether a request with this User-Agent only asked what the server is."""
    return user_agent.strip().lower() == USER_AGENT
