"""What can be started from the page: for each command its fields, and the exact arguments that they make.

Every value goes into one argument of its own, written `--name=value`, so that none can become another option; no shell
is involved. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LONGEST = 2000
_URL = re.compile(r"https?://[^\s\x00-\x1f]+\Z")
_UPSTREAM = re.compile(r"(?:[A-Za-z0-9_\-]{1,40}=)?(?:https?://[^\s\x00-\x1f]+|(?:mlx|llamacpp):[^\x00-\x1f]+)\Z")
_STACK = re.compile(r"[a-z][a-z\-]{1,40}(?::[^\x00-\x1f]*)?\Z")


class FormError(ValueError):
    """A field that cannot be used; the message names it and says what is wanted."""


@dataclass(frozen=True)
class Field:
    """One field: `kind` is url, text, command, number, run or check."""

    name: str
    label: str
    kind: str
    help: str
    required: bool = False
    example: str = ""


@dataclass(frozen=True)
class Form:
    """One command that can be started."""

    name: str
    title: str
    does: str
    fields: tuple[Field, ...]
    arguments: Callable[[Mapping[str, str]], list[str]]


def _wrap(values: Mapping[str, str]) -> list[str]:
    made = [f"--upstream={value}" for value in _upstreams(values)]
    if values.get("model"):
        made.append(f"--model={values['model']}")
    return ["wrap", *made, "--", *_words(values, "agent")]


def _proxy(values: Mapping[str, str]) -> list[str]:
    made = [f"--upstream={value}" for value in _upstreams(values)]
    if values.get("port"):
        made.append(f"--port={_port(values['port'])}")
    return ["proxy", *made]


def _diagnose(values: Mapping[str, str]) -> list[str]:
    made = [f"--model={values['model']}"] if values.get("model") else []
    if values.get("disruptive"):
        made.append("--disruptive")
    return ["diagnose", *made, "--", _url(values["url"], "Server")]


def _pair(values: Mapping[str, str]) -> list[str]:
    made = ["--yes"]
    if values.get("stack"):
        if not _STACK.match(values["stack"]):
            raise FormError("Stack: a name such as llamacpp or vllm, with flags after a colon if you like")
        made.append(f"--stack={values['stack']}")
    if values.get("url"):
        made.append(f"--url={_url(values['url'], 'Server')}")
    if values.get("model"):
        made.append(f"--model={values['model']}")
    return ["pair", *made, "--", *_words(values, "agent")]


def _report(values: Mapping[str, str]) -> list[str]:
    return ["report", "--", values["run"]]


_SERVER = Field("url", "Server", "url", "Base URL of the model server.", True, "http://localhost:11434")
_UPSTREAMS = Field(
    "upstream",
    "Server",
    "text",
    "Base URL of the model server; several with spaces between.",
    True,
    "http://localhost:8080",
)
_MODEL = Field("model", "Model", "text", "Its name on the server; may be left out where there is only one.")
_AGENT = Field("agent", "Agent", "command", "The command as you would type it.", True, "aider --model openai/qwen3")

FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("wrap", "Run an agent, recorded", "Runs the command with everything between it and the server recorded.",
             (_UPSTREAMS, _MODEL, _AGENT), _wrap),
        Form("proxy", "Record until stopped", "Listens on this machine and records what goes through; Stop ends it.",
             (_UPSTREAMS, Field("port", "Port", "number", "Listen here; a free one by default.")), _proxy),
        Form("diagnose", "Diagnose a server", "Sends the server a few dozen small requests and says what is wrong.",
             (_SERVER, _MODEL, Field("disruptive", "May load models", "check",
                                     "Allow what loads, creates, removes or may wedge something.")), _diagnose),
        Form("pair", "Try an agent with a server",
             "Walks the agent through a known task with a model that cannot fail.",
             (_AGENT, Field("stack", "Stack", "text", "Start this server for it.", example="llamacpp"),
              Field("url", "or your server", "url", "A server of yours that serves the known-answer model."),
              _MODEL), _pair),
        Form("report", "Write a report", "Writes report.md, report.html and report.json into the run's folder.",
             (Field("run", "Run", "run", "Which run.", True),), _report),
    )
}  # fmt: skip


def arguments(name: str, given: Mapping[str, object]) -> list[str]:
    """The arguments after the program's name. Raises FormError."""
    form = FORMS.get(name)
    if form is None:
        raise FormError(f"{name[:40]!r} cannot be started from here")
    return form.arguments(_checked(form, given))


def shown(words: Sequence[str]) -> str:
    """The command as one would type it."""
    return shlex.join(words)


def as_data() -> list[dict[str, object]]:
    """The forms for the page."""
    return [
        {
            "name": form.name,
            "title": form.title,
            "does": form.does,
            "fields": [
                {
                    "name": field.name,
                    "label": field.label,
                    "kind": field.kind,
                    "help": field.help,
                    "required": field.required,
                    "example": field.example,
                }
                for field in form.fields
            ],
        }
        for form in FORMS.values()
    ]


def _checked(form: Form, given: Mapping[str, object]) -> dict[str, str]:
    known = {field.name: field for field in form.fields}
    values: dict[str, str] = {}
    for name, value in given.items():
        field = known.get(name)
        if field is None:
            raise FormError(f"{form.name} has no field {name[:40]!r}")
        if field.kind == "check":
            values[name] = "yes" if value is True else ""
            continue
        if not isinstance(value, str) or len(value) > LONGEST or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", value):
            raise FormError(f"{field.label}: a line of text, at most {LONGEST} characters")
        values[name] = value.strip()
    missing = [field.label for field in form.fields if field.required and not values.get(field.name)]
    if missing:
        raise FormError(f"{', '.join(missing)}: this is needed")
    return values


def _upstreams(values: Mapping[str, str]) -> list[str]:
    given = values["upstream"].split()
    for value in given:
        if not _UPSTREAM.match(value):
            raise FormError(f"Server: {value[:100]!r} is no URL; write http://localhost:8080")
    return given


def _url(value: str, label: str) -> str:
    if not _URL.match(value):
        raise FormError(f"{label}: {value[:100]!r} is no URL; write http://localhost:8080")
    return value


def _port(value: str) -> int:
    if not value.isdecimal() or not 0 <= int(value) <= 65535:
        raise FormError("Port: a number from 0 to 65535")
    return int(value)


def _words(values: Mapping[str, str], name: str) -> list[str]:
    try:
        words = shlex.split(values[name])
    except ValueError as failure:
        raise FormError(f"Agent: the command cannot be read ({failure})") from None
    if not words or words[0].startswith("-"):
        raise FormError("Agent: begin with the program's name")
    return words
