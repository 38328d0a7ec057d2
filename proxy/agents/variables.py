"""Variables that point common clients at the relay.

Names are those each client's own source or documentation gives (openai-python `_client.py`, anthropic SDK,
ollama-python `_client.py`, LiteLLM provider docs, goose, OpenHands, pydantic-ai; as of 2026-11).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

DUMMY_KEY = "sk-no-key-required"
"""Set only where the user has no key: several SDKs refuse to start without one, local servers ignore it."""

_WITH_V1 = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "LLM_BASE_URL",
    "OLLAMA_BASE_URL",
    "LM_STUDIO_API_BASE",
    "HOSTED_VLLM_API_BASE",
    "LLAMAFILE_API_BASE",
)
_WITHOUT_V1 = ("ANTHROPIC_BASE_URL", "OLLAMA_HOST", "OLLAMA_API_BASE")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def base_url_environment(relay_url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to set so that common clients talk to the relay at `relay_url` (no trailing slash, no /v1).

    Existing base-URL variables are overridden, existing keys are kept, NO_PROXY is extended by the loopback names.
    """
    result = dict.fromkeys(_WITH_V1, f"{relay_url}/v1")
    result.update(dict.fromkeys(_WITHOUT_V1, relay_url))
    parts = urlsplit(relay_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.strip("/")
    result["OPENAI_HOST"] = result["ANTHROPIC_HOST"] = origin
    result["OPENAI_BASE_PATH"] = f"{path}/v1/chat/completions".lstrip("/")
    if not environment.get("OPENAI_API_KEY"):
        result["OPENAI_API_KEY"] = DUMMY_KEY
    if not environment.get("ANTHROPIC_API_KEY") and not environment.get("ANTHROPIC_AUTH_TOKEN"):
        result["ANTHROPIC_AUTH_TOKEN"] = DUMMY_KEY
    for name in ("NO_PROXY", "no_proxy"):
        result[name] = _extended_no_proxy(environment.get(name) or environment.get(name.swapcase()) or "")
    result["STACKTAP_RELAY"] = relay_url
    return result


def _extended_no_proxy(value: str) -> str:
    entries = [entry.strip() for entry in value.split(",") if entry.strip()]
    if "*" in entries:
        return value
    return ",".join(entries + [name for name in LOOPBACK if name not in entries])
