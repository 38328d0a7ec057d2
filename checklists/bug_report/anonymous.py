"""What a bug report must not carry: keys, people, machines. Readable words stand in their place. Pure.

The recorder has masked the keys it knew (asterisks). This is the second look, at whatever else looks like a key, a
home folder, a user, an address or a host of one's own. It cannot know every secret: the reader is told to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from proxy.recording.secret_names import secret_name

HIDDEN = "***"
USER = "user"
HOST = "host.example"
ADDRESS = "192.0.2.1"
"""Stands for any address of a machine (RFC 5737 keeps it free for documents)."""

_COMMON_USERS = frozenset(
    [
        "user",
        "users",
        "root",
        "admin",
        "ubuntu",
        "debian",
        "runner",
        "shared",
        "public",
        "default",
        "guest",
        "home",
        "node",
        "app",
        "vscode",
        "www",
        "data",
        "all",
    ]
)
_COMMON_HOSTS = frozenset(["localhost", "server", "host", "ubuntu", "debian", "docker", "proxy", "relay"])
_LOOPBACK = re.compile(r"(?:127(?:\.\d{1,3}){3}|0\.0\.0\.0|localhost|::1|::|\[::1?\])\Z", re.IGNORECASE)

_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{16,}|sk_(?:live|test)_\w{10,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|xox[abeprs]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}|nvapi-[\w-]{20,}|gsk_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?i)\b(bearer|basic|token)([ \t]+)([A-Za-z0-9+/_.=~-]{12,})")
_NAMED = re.compile(r"""([A-Za-z][\w.-]{2,40})(\\*["']?[ \t]{0,4}[=:][ \t]{0,4}\\*["']?)([^\s"'\\,;&<>(){}\[\]]{6,})""")
_USERINFO = re.compile(r"://[^/\s@\"'\\?#]{1,200}@")
_MAIL = re.compile(
    r"[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,5}\.[A-Za-z]{2,12}\b"
)
_PROMPT = re.compile(r"\b([A-Za-z_][\w.-]{0,31})@([A-Za-z][\w.-]{0,62})(?=:[~/\\]|[ \t]+[~/]\S*[\]$#%])")
_HOME = re.compile(r"""(\\*[/\\])(home|Users|Benutzer|utilisateurs)(\\*[/\\])([^/\\\s"'`:;,<>|*?()\[\]{}]{1,64})""")
_INTERNAL = re.compile(
    r"(?<![\w.-])(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,5}"
    r"(?:local|lan|internal|intranet|corp|localdomain|home|home\.arpa|ts\.net)\b(?![\w-])"
)
_URL_HOST = re.compile(r"(?<=://)[A-Za-z][A-Za-z0-9-]{0,62}(?=[:/\s\"'\\]|\Z)")
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){3,7}(?::?[0-9A-Fa-f]{1,4})(?![\w:])")


class Anonymiser:
    """Takes out what points to a person or a machine. `names` are to be hidden besides: of users and of hosts."""

    def __init__(self, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._words: dict[str, str] = {}
        for user in users:
            self._hide_user(user)
        for host in hosts:
            self._hide_host(host)
        self._pattern: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Take note of the users whose home folders or prompts stand in a text: they are hidden everywhere then."""
        for found in _HOME.finditer(text):
            self._hide_user(found[4])
        for found in _PROMPT.finditer(text):
            self._hide_user(found[1])
            self._hide_host(found[2])

    def learn_url(self, url: str) -> None:
        """Hide the host of a URL, where it is not this machine."""
        try:
            self._hide_host(urlsplit(url).hostname or "")
        except ValueError:
            return

    def _hide_user(self, name: str) -> None:
        if len(name) >= 3 and name.lower() not in _COMMON_USERS and not name.isdigit():
            self._words[name] = USER
            self._pattern = None

    def _hide_host(self, name: str) -> None:
        for part in (name, name.partition(".")[0]):
            if len(part) >= 4 and part.lower() not in _COMMON_HOSTS and not _LOOPBACK.match(part):
                self._words.setdefault(part, HOST)
                self._pattern = None

    def text(self, text: str) -> str:
        """A text without them."""
        text = _PRIVATE_KEY.sub("(private key)", text)
        text = _TOKENS.sub(HIDDEN, text)
        text = _BEARER.sub(rf"\1\2{HIDDEN}", text)
        text = _NAMED.sub(_without_value, text)
        text = _USERINFO.sub(f"://{HIDDEN}@", text)
        text = _MAIL.sub("someone@example.com", text)
        text = _PROMPT.sub("user@host", text)
        text = _HOME.sub(lambda found: f"{found[1]}{found[2]}{found[3]}{_user(found[4])}", text)
        text = self._own_words(text)
        text = _INTERNAL.sub(HOST, text)
        text = _URL_HOST.sub(lambda found: found[0] if _LOOPBACK.match(found[0]) else HOST, text)
        text = _IPV4.sub(_address, text)
        return _IPV6.sub("2001:db8::1", text)

    def _own_words(self, text: str) -> str:
        if not self._words:
            return text
        if self._pattern is None:
            longest = sorted(self._words, key=len, reverse=True)
            self._pattern = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(map(re.escape, longest)) + r")(?![A-Za-z0-9])")
        return self._pattern.sub(lambda found: self._words[found[0]], text)

    def value(self, value: Any, depth: int = 0) -> Any:
        """A JSON value without them; texts under the names of keys and passwords go whole."""
        if isinstance(value, str):
            return self.text(value)
        if depth > 200:
            return value
        if isinstance(value, list):
            return [self.value(each, depth + 1) for each in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self._under(str(key), each, depth) for key, each in value.items()}
        return value

    def _under(self, key: str, value: Any, depth: int) -> Any:
        if isinstance(value, str) and len(value) >= 6 and secret_name(key.encode("utf-8", "replace")):
            return HIDDEN
        return self.value(value, depth + 1)

    def flags(self, command: Iterable[str]) -> list[str]:
        """A command line: paths are cut to their last part."""
        return [self.text(_last_part(word)) for word in command]


def _user(name: str) -> str:
    return name if name.lower() in _COMMON_USERS else USER


def _without_value(found: re.Match[str]) -> str:
    if not secret_name(found[1].encode("utf-8", "replace")):
        return found[0]
    return f"{found[1]}{found[2]}{HIDDEN}"


def _address(found: re.Match[str]) -> str:
    parts = [int(part) for part in found[0].split(".")]
    if max(parts) > 255 or _LOOPBACK.match(found[0]):
        return found[0]
    return ADDRESS


_PATH = re.compile(r"(--?[A-Za-z][\w.-]*=)?(?:~|\.{0,2}|[A-Za-z]:)[/\\](?:[^/\\]*[/\\])*([^/\\]*)[/\\]?\Z")


def _last_part(word: str) -> str:
    found = _PATH.match(word)
    if found is None or not found[2]:
        return word
    return f"{found[1] or ''}{found[2]}"
