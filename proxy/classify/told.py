"""What a server itself said of a model's template and parser, in an exchange of the same record.

llama-server's `/props` holds the chat template; Ollama's `/api/show` the template, and `PARSER` in the modelfile.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from proxy.classify.facts import Facts
from stacks.strictjson import UNPARSED, load

_PARSER = re.compile(r"^PARSER +(\S+)", re.MULTILINE)
_LONGEST = 200_000


class Told(NamedTuple):
    """A model's chat template ("" where not said) and the parser named for it ("" for none)."""

    template: str = ""
    parser: str = ""


def told_by(facts: Facts) -> tuple[str, Told] | None:
    """The model (by the name that was asked about; "" for whatever is loaded) and what was said of it; None where this
    exchange says nothing of the kind."""
    route = facts.assembled.route
    if route not in ("props", "show") or facts.status != 200:
        return None
    said = load(facts.view.wire.response_body)
    if not isinstance(said, dict):
        return None
    template = said.get("chat_template" if route == "props" else "template")
    modelfile = said.get("modelfile")
    parser = _PARSER.search(modelfile) if isinstance(modelfile, str) else None
    if not isinstance(template, str) or not template:
        return None
    return _asked_about(facts), Told(template[:_LONGEST], parser[1] if parser is not None else "")


def _asked_about(facts: Facts) -> str:
    asked = load(facts.view.wire.request_body) if facts.view.wire.request_body else UNPARSED
    if not isinstance(asked, dict):
        return ""
    return next((asked[key] for key in ("model", "name") if isinstance(asked.get(key), str)), "")
