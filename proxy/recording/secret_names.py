"""Which headers, parameters, flags and variables hold secrets, told by the words in their names."""

from __future__ import annotations

import re

_SECRET = re.compile(
    rb"(?<!mon)(?<!tur)(?<!hot)(?<!hoc)(?<!don)key(?!s|board|word|file|ring|map|code|press|stroke|frame|note|timeout)|"
    rb"(?:api|secret|access|private|auth|signing|encryption)[-_.]?keys|"
    rb"token(?!s|iz)|secret|passw|passphrase|pwd|credential|signature|"
    rb"(?:^|[-_.])(?:sig|auth|pass|jwt|sid)(?:$|[-_.])",
    re.IGNORECASE,
)
_ORDINARY = re.compile(
    rb"(?:^|[-_])(?:idempotency|cache|surrogate|partition|routing|sort|primary|foreign)[-_]?key|sec-websocket-key|"
    rb"rate-?limit|max[-_]?token|key[-_]?(?:size|len|usage|algo)|token[-_]?(?:ids?$|count|usage|limit|budget)|"
    rb"(?:^|[-_])(?:eos|bos|eot|pad|unk|sep|cls|mask|stop|special|added|image|audio|video|tool|draft|prompt|completion|"
    rb"reasoning|think(?:ing)?|first|last|next|new|per|num|min|n|time[-_]?to[-_]?first|inter)[-_]?token(?:$|[-_])|"
    rb"tokenizer|www-authenticate|content-|access-control-|\A(?-i:(?:OLD)?PWD)\Z|"
    rb"[-_](?:type|name|mode|scheme|method|version|provider|expires|expiry|url|uri|path|file|dir|directory|home|sock)$",
    re.IGNORECASE,
)
_PATH = re.compile(
    rb"(?:/(?:home|root|usr|run|tmp|var|etc|opt|mnt|srv|dev|proc|sys|nix|snap|private|Users|Volumes|Library)/|/\Z|~/|"
    rb"\.{1,2}/|[A-Za-z]:[\\/])[^\0]*\Z"
)


def secret_name(name: bytes) -> bool:
    """Whether a value under this name is taken for a secret.

    `api_key`, `X-Auth-Token`, `password`, `sig` are; `max_tokens`, `Idempotency-Key`, `KEYBOARD`, `TOKEN_FILE` are not,
    nor is `PWD`, the shell's name of its folder.
    """
    return _SECRET.search(name) is not None and _ORDINARY.search(name) is None


def plainly_a_path(value: bytes) -> bool:
    """Whether a value is the path of a file or folder: variables and flags named after keys often say where they lie.

    Only what begins like a path of a common system counts: a random secret in base64 may begin with a slash, too.
    """
    return _PATH.match(value) is not None
