"""Which serving stack answered, by what only it sends, and the error texts that hide in an error object."""

from __future__ import annotations

import re

from stacks.dialects import Assembled, WireExchange, header

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


_LLAMA_BUILD = re.compile(r"\Ab\d+-[0-9a-f]{6,}\Z")
_MLX = re.compile(r"\A\d+\.\d+\.\d+-\d+\.\d+\.\d+-")


def fingerprint(wire: WireExchange, assembled: Assembled) -> str:
    """The serving stack's name, or "" (the sources of these marks are listed in docs/outcomes.md)."""
    server = header(wire.response_headers, "server") or ""
    if server.startswith("llama.cpp"):
        return "llamacpp"
    turn = assembled.turn
    named = _by_mark((turn.fingerprint or "") if turn is not None else "")
    if named:
        return named
    if server.startswith("BaseHTTP/"):
        return "mlx_server"
    if assembled.route.startswith("api_") or b"registry.ollama.ai" in wire.response_body[:2048]:
        return "ollama"
    if server == "uvicorn" and header(wire.response_headers, "openai-processing-ms"):
        return "llamacpp_python"
    return "llamacpp" if turn is not None and "timings" in turn.extra else ""


def _by_mark(mark: str) -> str:
    if mark == "fp_ollama":
        return "ollama"
    if mark.startswith("vllm-"):
        return "vllm"
    if _LLAMA_BUILD.match(mark):
        return "llamacpp"
    return "mlx_server" if _MLX.match(mark) else ""
