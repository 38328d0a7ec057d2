"""Values from recordings as JSON and times that every reader takes. Pure."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_US = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z, the last time that ISO 8601 has four digits for."""

_encoder = msgspec.json.Encoder()


def encoded(value: Any) -> bytes:
    """As JSON in UTF-8, numbers that are none as null; half a surrogate pair, which UTF-8 cannot hold, becomes `?`."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_writable(value))


def json_text(value: Any) -> str:
    """`encoded` as text."""
    return encoded(value).decode()


def writable(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, dict):
        return {_writable(key): _writable(each) for key, each in value.items()}
    return [_writable(each) for each in value] if isinstance(value, list | tuple) else value


def iso_time(microseconds: int) -> str:
    """Microseconds since the Unix epoch as ISO 8601 in UTC."""
    at = _EPOCH + timedelta(microseconds=min(max(microseconds, 0), LATEST_US))
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def text_or_base64(data: bytes) -> tuple[str, str | None]:
    """(text, None) where the bytes are UTF-8, else (base64, "base64")."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
