"""What is masked in heads, targets, launch flags and notes, and which secrets are learned from them.

Secrets are forwarded as they came and never written: only the stored copy is masked, each byte by one asterisk, so
that lengths and offsets stay true. Pure: no I/O.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from proxy.recording.heads import Heads
from proxy.recording.mask import BodyMasker, Rules
from proxy.recording.secret_names import plainly_a_path, secret_name
from proxy.recording.secrets import MASK, Secrets

_QUERY = re.compile(rb"([?&;#])([^=&;#?\s\"']+)=([^&;#\s\"']*)")
_TAG = re.compile(rb"([/,]|%2C)([^=/,?#&;\s\"'%]+)(=|%3D)([^,/?#\s\"'%]*(?:%(?!2C)[^,/?#\s\"'%]*)*)", re.IGNORECASE)
_USERINFO = re.compile(rb"(?<=://)([^/@\s?#\"']+)@")
_URL_HEADERS = frozenset({b"referer", b"location", b"content-location", b"origin", b"link", b"refresh"})
_COOKIE_HEADERS = frozenset({b"cookie", b"set-cookie", b"set-cookie2"})
_SCHEMED = re.compile(rb"([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*)([ \t]+)(.+)\Z", re.DOTALL)
_COOKIE = re.compile(rb"([^=;\s]+)=([^;]*)")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)
_FLAG = re.compile(r"(--?[A-Za-z][A-Za-z0-9_.-]*)(?:=(.*))?\Z", re.DOTALL)
_SEVERAL = re.compile(rb"[,;=\s]+")
_MIN_PART = 8
_MIN_PLAIN_COOKIE = 12
_CACHED_LINES = 2048
_LONGEST_CACHED_LINE = 512


class Redactor:
    """Masks one run. Not thread-safe: learn at construction and on the writer thread only.

    `patterns` are regular expressions (bytes matching them are masked anywhere), `fields` names of JSON string fields
    whose values are masked. Raises ValueError for a pattern that is none.
    """

    def __init__(self, patterns: Sequence[str] = (), fields: Sequence[str] = ()) -> None:
        self.secrets = Secrets()
        self._rules = Rules(self.secrets, patterns, fields)
        self._lines: tuple[dict[bytes, bytes], dict[bytes, bytes]] = ({}, {})
        """Header lines of requests and of responses, masked by their structure: most come again and again."""
        heads = Heads(self._rules, self._head)
        self.request_head = heads.request
        """Learn from a request's head, then mask it."""
        self.response_head = heads.response
        """Learn from a response's head, then mask it."""

    @property
    def plain(self) -> bool:
        """Whether only secrets are looked for: no patterns, no fields."""
        return self._rules.plain

    def learn(self, value: str | bytes) -> None:
        """Mask this value from now on."""
        self.secrets.learn(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)

    def learn_url(self, url: str) -> None:
        """Learn the user-info and the secret query parameters of a URL."""
        self._url(url.encode("utf-8", "surrogateescape"))

    def learn_environment(self, environment: Mapping[str, str]) -> None:
        """Learn the values of variables whose names speak of keys, tokens, secrets or passwords."""
        for name, value in environment.items():
            if secret_name(name.encode("utf-8", "surrogateescape")):
                self._learn_given(value)
            elif "://" in value:
                self.learn_url(value)

    def _learn_given(self, value: str) -> bool:
        """Learn the value of a variable or flag, and each of several in one; False where it is a path."""
        raw = value.encode("utf-8", "surrogateescape")
        if plainly_a_path(raw):
            return False
        self.secrets.learn(raw)
        for part in _SEVERAL.split(raw):
            if _MIN_PART <= len(part) < len(raw):
                self.secrets.learn(part)
        return True

    def learn_arguments(self, arguments: Sequence[str]) -> list[str]:
        """Learn the secrets in a command line; returns it masked."""
        masked: list[str] = []
        expects = False
        for argument in arguments:
            flag = _FLAG.match(argument)
            assigned = _ASSIGNMENT.match(argument)
            if expects and not (flag is not None and argument.startswith("--")):
                masked.append("*" * len(argument) if self._learn_given(argument) else argument)
                expects = False
                continue
            expects, shown = False, argument
            if flag is not None and secret_name(flag[1].lstrip("-").encode()):
                if flag[2] is None:
                    expects = True
                elif self._learn_given(flag[2]):
                    shown = f"{flag[1]}={'*' * len(flag[2])}"
            elif assigned is not None and secret_name(assigned[1].encode()):
                if self._learn_given(assigned[2]):
                    shown = f"{assigned[1]}={'*' * len(assigned[2])}"
            else:
                shown = self._argument(argument)
            masked.append(shown)
        return [self.text(argument) for argument in masked]

    def _argument(self, argument: str) -> str:
        raw = argument.encode("utf-8", "surrogateescape")
        name, colon, value = raw.partition(b":")
        if colon and value[:1] == b" " and re.fullmatch(rb"[A-Za-z0-9-]+", name):
            raw = name + colon + self._header(name.lower(), value, response=False)
        else:
            raw = self._url(raw)
        return raw.decode("utf-8", "replace")

    def mask(self, data: bytes) -> bytes:
        """Whole bytes, masked by secrets, patterns and fields."""
        return self._rules.mask(data) if data else data

    def text(self, text: str) -> str:
        """A text, masked."""
        raw = text.encode("utf-8", "surrogatepass")
        masked = self.mask(raw)
        return text if masked is raw else masked.decode("utf-8", "replace")

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A JSON-like mapping, masked in depth; values under secret names are masked whole."""
        out: dict[str, Any] = {}
        for key, value in fields.items():
            secret = isinstance(value, str) and secret_name(str(key).encode("utf-8", "replace"))
            if secret and self._learn_given(value):
                out[self.text(str(key))] = "*" * len(value)
            else:
                out[self.text(str(key))] = self._value(value)
        return out

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.mask(value).decode("utf-8", "replace")
        if isinstance(value, Mapping):
            return self.fields(value)
        if isinstance(value, Iterable):
            return [self._value(item) for item in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))

    def body_mask(self, *, chunked: bool, content_encoding: str) -> BodyMasker:
        """A mask for one body."""
        return BodyMasker(self._rules, chunked=chunked, content_encoding=content_encoding)

    def target(self, target: bytes) -> str:
        """A request target, masked."""
        return self.mask(self._url(target)).decode("utf-8", "replace")

    def tags(self, tags: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Tags as read, masked by their names and by everything known."""
        return tuple(
            (self.text(name), "*" * len(value) if secret_name(name.encode()) else self.text(value))
            for name, value in tags
        )

    def _head(self, raw: bytes, response: bool) -> bytes:
        """Learn and mask by the structure of the head, then by everything known."""
        lines = raw.split(b"\n")
        first = next((index for index, line in enumerate(lines) if line.strip(b"\r")), 0)
        out = lines[:first]
        if first < len(lines):
            out.append(lines[first] if response else self._url(lines[first]))
        known = self._lines[response]
        name: bytes | None = b""
        for at, line in enumerate(lines[first + 1 :], first + 1):
            if line[:1] in (b" ", b"\t"):
                if name is None:
                    name = lines[at - 1].partition(b":")[0].strip().lower()
                out.append(self._header(name, line, response=response) if line.strip() else line)
                continue
            masked = known.get(line)
            if masked is not None:
                name = None
                out.append(masked)
                continue
            key, colon, value = line.partition(b":")
            name = key.strip().lower()
            out.append(key + colon + self._header(name, value, response=response) if colon else line)
            if len(line) <= _LONGEST_CACHED_LINE:
                if len(known) >= _CACHED_LINES:
                    known.clear()
                known[line] = out[-1]
        return self.mask(b"\n".join(out))

    def _header(self, name: bytes, value: bytes, *, response: bool) -> bytes:
        """One header's value, masked by what its name says; secrets in it are learned."""
        body = value.strip(b" \t\r\n")
        if not body:
            return value
        lead = value[: len(value) - len(value.lstrip(b" \t"))]
        trail = value[len(lead) + len(body) :]
        if name.endswith(b"authorization"):
            return lead + self._credentials(body) + trail
        if name in _COOKIE_HEADERS:
            count = 0 if name == b"cookie" else 1
            masked = _COOKIE.sub(lambda match: match[1] + b"=" + self._cookie(match[2]), body, count=count)
            return lead + masked + trail
        if name in _URL_HEADERS:
            return lead + self._url(body) + trail
        if name == b"x-stacktap-tag":
            return lead + self._tags(b"," + body)[1:] + trail
        if secret_name(name):
            if response:
                self._learn_loose(body)
            else:
                self.secrets.learn(body)
            return lead + MASK * len(body) + trail
        return value

    def _credentials(self, value: bytes) -> bytes:
        match = _SCHEMED.match(value)
        if match is None:
            self.secrets.learn(value)
            return MASK * len(value)
        self.secrets.learn(match[3])
        if match[1].lower() == b"basic":
            self._basic(match[3])
        return match[1] + match[2] + MASK * len(match[3])

    def _basic(self, value: bytes) -> None:
        try:
            pair = base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error):
            return
        user, _, password = pair.partition(b":")
        for part in (pair, user, password):
            self.secrets.learn(part)

    def _cookie(self, value: bytes) -> bytes:
        body = value.strip().strip(b'"')
        self._learn_loose(body)
        return value.replace(body, MASK * len(body)) if body else value

    def _learn_loose(self, value: bytes) -> None:
        """Learn a value that may as well be an ordinary word or number: only where it does not look like one."""
        plain = value.isalpha() or value.isdigit()
        if not plain or len(value) >= _MIN_PLAIN_COOKIE:
            self.secrets.learn(value)
            if b"%" in value:
                self.secrets.learn(unquote_to_bytes(value))

    def _url(self, raw: bytes) -> bytes:
        """User-info and secret query parameters in anything that may be a URL, learned and masked."""
        if b"://" in raw:
            raw = _USERINFO.sub(self._userinfo, raw)
        if b"/t/" in raw:
            path, mark, query = raw.partition(b"?")
            raw = self._tags(path) + mark + query
        if b"=" in raw:
            raw = _QUERY.sub(self._parameter, raw)
        return raw

    def _tags(self, path: bytes) -> bytes:
        """A path with tags in it (`/t/k=v,k=v/`), or such a list: the values under secret names, learned and masked."""
        return _TAG.sub(self._tag, path)

    def _tag(self, match: re.Match[bytes]) -> bytes:
        if not secret_name(match[2]):
            return match[0]
        self.secrets.learn(match[4])
        self.secrets.learn(unquote_to_bytes(match[4]))
        return match[1] + match[2] + match[3] + MASK * len(match[4])

    def _userinfo(self, match: re.Match[bytes]) -> bytes:
        user, colon, password = match[1].partition(b":")
        for part in (match[1], user, password):
            self.secrets.learn(part)
            self.secrets.learn(unquote_to_bytes(part))
        return MASK * len(user) + colon + MASK * len(password) + b"@"

    def _parameter(self, match: re.Match[bytes]) -> bytes:
        if not secret_name(unquote_to_bytes(match[2])):
            return match[0]
        self.secrets.learn(match[3])
        self.secrets.learn(unquote_to_bytes(match[3].replace(b"+", b" ")))
        self.secrets.learn(unquote_to_bytes(match[3]))
        return match[1] + match[2] + b"=" + MASK * len(match[3])
