"""Which headers, parameters, flags and variables hold secrets, told by the words in their names."""

from __future__ import annotations

import re

_SECRET = re.compile(
    rb"key(?!s|board|word)|token(?!s|iz)|secret|passw|passphrase|pwd|credential|signature|"
    rb"(?:^|[-_.])(?:sig|auth|pass|jwt|sid)(?:$|[-_.])",
    re.IGNORECASE,
)
_ORDINARY = re.compile(
    rb"(?:^|[-_])(?:idempotency|cache|surrogate|partition|routing|sort|primary|foreign)[-_]?key|sec-websocket-key|"
    rb"rate-?limit|max[-_]?token|key[-_]?(?:size|len|usage|algo)|token[-_]?(?:ids?$|count|usage|limit)|"
    rb"tokenizer|www-authenticate|content-|access-control-|"
    rb"[-_](?:type|name|mode|scheme|method|version|provider|expires|expiry|url|uri|path|file|dir|home|sock)$",
    re.IGNORECASE,
)


def secret_name(name: bytes) -> bool:
    """Whether a value under this name is taken for a secret.

    `api_key`, `X-Auth-Token`, `password`, `sig` are; `max_tokens`, `Idempotency-Key`, `KEYBOARD`, `TOKEN_FILE` are not.
    """
    return _SECRET.search(name) is not None and _ORDINARY.search(name) is None
