"""The error texts that hide in an error object."""

from __future__ import annotations

import re

_MAX_DEEP = 40
_CODE = re.compile(r"(?!.*_error\Z)[a-z]+(?:_[a-z]+)+")
"""An error code that says something by itself (`tool_choice_not_supported`); `..._error` only says that it is one."""


def deep_messages(value: object) -> list[str]:
    """Every text under a `message`, `error`, `detail` or the like of an error object, at any depth (at most 40)."""
    found: list[str] = []
    pending: list[object] = [value]
    seen = 0
    while pending and len(found) < _MAX_DEEP and seen < 1000:
        current = pending.pop(0)
        seen += 1
        if isinstance(current, dict):
            for key, member in current.items():
                if isinstance(member, str) and key in ("message", "error", "detail", "msg", "reason", "raw"):
                    found.append(member)
                elif isinstance(member, str) and key == "failed_generation":
                    found.append(f"raw output: {member}")
                elif key == "param" and isinstance(member, str) and member.startswith(("messages", "input")):
                    found.append(f"in {member}")
                elif key == "code" and isinstance(member, str) and _CODE.fullmatch(member):
                    found.append(member.replace("_", " "))
                elif key == "loc" and isinstance(member, (list, tuple)):
                    found.append("loc " + ".".join(map(str, member)))
                elif isinstance(member, (dict, list)):
                    pending.append(member)
        elif isinstance(current, list):
            pending.extend(item for item in current if isinstance(item, (dict, list)))
    return found
