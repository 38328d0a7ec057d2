"""What a canary model is told to write: scripts, triggers, and the sizes of the model that holds them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

END_OF_TURN = "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"
TURN_START = "<|im_start|>"
GENERATION_PROMPTS = ("<|im_start|>assistant\n", "<|assistant|>\n", "<start_of_turn>model\n", "<think>\n")
"""Ends of the prompts that common chat templates render. One token each: a prompt that ended in a bare newline token
would be continued as if the newline after an opening tag had just been written."""
END_TOKENS = (END_OF_TURN, END_OF_TEXT)
LONGEST_CHUNK = 24
"""Bytes of text in one token. Tokens of more than 32 bytes vanish in llama-cpp-python's detokeniser buffer."""


class CanaryError(ValueError):
    """A canary cannot be built, read or trusted; the message says what is wrong and what to change."""


def text_bytes(text: str) -> bytes:
    """UTF-8 bytes of ``text``; lone surrogates U+DC80..U+DCFF stand for raw bytes (PEP 383)."""
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Script:
    """One fixed answer.

    ``text`` is written from the generation prompt on; it may hold raw bytes as lone surrogates (PEP 383).
    ``loop`` is repeated for ever after it. Without a loop the script ends with the ``end`` token.
    ``chunks`` cuts ``text`` by hand (they must join to it); otherwise it is cut automatically.
    ``fallback`` is what follows when a server's grammar forbids the end.
    """

    name: str
    text: str = ""
    loop: str = ""
    end: str = END_OF_TURN
    chunks: tuple[str, ...] = ()
    fallback: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if not self.name or any(c in "[]" or c.isspace() for c in self.name):
            raise CanaryError(f"script name {self.name!r} must be non-empty, without brackets and white space")
        if self.end not in END_TOKENS:
            raise CanaryError(f"script {self.name!r} ends with {self.end!r}; use one of {END_TOKENS}")
        if self.chunks and "".join(self.chunks) != self.text:
            raise CanaryError(f"the chunks of script {self.name!r} do not join to its text")
        if self.loop and self.fallback:
            raise CanaryError(f"script {self.name!r} never ends, so it cannot have a fallback for a forbidden end")

    def known_bytes(self, loops: int = 3) -> bytes:
        """The bytes that the model writes; of an endless script the beginning, with that many ``loops``."""
        return text_bytes(self.text + self.loop * loops)

    def known_text(self, loops: int = 3) -> str:
        """``known_bytes`` as text; bytes that are not UTF-8 show as U+FFFD, as most servers show them."""
        return self.known_bytes(loops).decode("utf-8", "replace")

    def to_dict(self) -> dict[str, Any]:
        """JSON form: only what differs from the defaults; texts that are not UTF-8 as ``{"hex": ...}``."""
        given = {name: value for name, value in asdict(self).items() if value not in ("", ())}
        for name in ("text", "loop", "fallback"):
            if name in given:
                given[name] = _text_to_json(given[name])
        if self.chunks:
            given["chunks"] = [_text_to_json(chunk) for chunk in self.chunks]
        return given

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Script:
        """Read the JSON form; raises CanaryError (or TypeError on unknown fields)."""
        given = dict(data)
        for name in ("text", "loop", "fallback"):
            if name in given:
                given[name] = _text_from_json(given[name])
        given["chunks"] = tuple(_text_from_json(chunk) for chunk in given.get("chunks", ()))
        return cls(**given)


def _text_to_json(text: str) -> str | dict[str, str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"hex": text_bytes(text).hex()}
    return text


def _text_from_json(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict) and set(data) == {"hex"}:
        return "".join(chr(byte if byte < 0x80 else 0xDC00 + byte) for byte in bytes.fromhex(data["hex"]))
    raise CanaryError(f"a text must be a string or {{'hex': ...}}, not {data!r:.60}")


@dataclass(frozen=True)
class CanarySpec:
    """Everything that decides the bytes of a canary.

    ``triggers`` maps further prompt texts to script names (each script always has ``[[name]]``).
    ``tags`` are texts that get one token each, also in prompts; ``split_after`` are the tags whose following newline
    is a token of its own (llama-server's grammar starts there). ``generation_prompts`` get one token each.
    ``template`` is the Jinja chat template. ``context`` is in tokens. ``hidden`` of 0 means: as small as fits.
    ``merges`` is the number of byte-pair merges that shorten prompts.
    """

    name: str
    scripts: tuple[Script, ...]
    template: str
    default: str = ""
    triggers: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
    split_after: tuple[str, ...] = ("<tool_call>",)
    generation_prompts: tuple[str, ...] = GENERATION_PROMPTS
    context: int = 65536
    hidden: int = 0
    merges: int = 3000
    chunk_bytes: int = 20

    def __post_init__(self) -> None:
        names = [script.name for script in self.scripts]
        if not names:
            raise CanaryError("a canary needs at least one script")
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise CanaryError(f"script names must be unique; given twice: {', '.join(doubled)}")
        for text, target in self.triggers.items():
            if target not in names:
                raise CanaryError(f"trigger {text!r} points to script {target!r}, which does not exist")
            if not text:
                raise CanaryError(f"the trigger of script {target!r} is empty")
        if not self.generation_prompts:
            raise CanaryError("a canary needs at least one generation prompt, the text that its template ends with")
        if self.default and self.default not in names:
            raise CanaryError(f"default script {self.default!r} does not exist; there are {', '.join(names)}")
        if not 1 <= self.chunk_bytes <= LONGEST_CHUNK:
            raise CanaryError(f"chunk_bytes is {self.chunk_bytes}; it must lie between 1 and {LONGEST_CHUNK}")
        if not 256 <= self.context <= 262144:
            raise CanaryError(f"context is {self.context} tokens; it must lie between 256 and 262144")
        if self.hidden % 64 or self.hidden < 0:
            raise CanaryError(f"hidden size is {self.hidden}; it must be a multiple of 64, or 0 for automatic")

    @property
    def default_script(self) -> str:
        """Name of the script that is written when the prompt holds no trigger."""
        return self.default or self.scripts[0].name

    def script(self, name: str) -> Script:
        """The script called ``name``; raises CanaryError when there is none."""
        for script in self.scripts:
            if script.name == name:
                return script
        raise CanaryError(f"no script {name!r}; there are {', '.join(s.name for s in self.scripts)}")

    def all_triggers(self) -> dict[str, str]:
        """Trigger text -> script name, ``[[name]]`` of every script first."""
        return {f"[[{script.name}]]": script.name for script in self.scripts} | dict(self.triggers)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; ``from_dict`` reads it back."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        given["scripts"] = [script.to_dict() for script in self.scripts]
        given["triggers"] = dict(self.triggers)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CanarySpec:
        """Read the JSON form; raises CanaryError when a field is missing or unknown."""
        try:
            given = dict(data)
            scripts = tuple(Script.from_dict(script) for script in given.pop("scripts"))
            for key in ("tags", "split_after", "generation_prompts"):
                if key in given:
                    given[key] = tuple(given[key])
            return cls(scripts=scripts, **given)
        except CanaryError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise CanaryError(f"not a canary specification: {error}") from error

    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
