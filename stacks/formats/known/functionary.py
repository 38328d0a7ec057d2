"""functionary: `>>>name` and JSON on the next line (v3.2), `<|recipient|>` and `<|content|>` (v2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, Found, ParsedCall
from stacks.formats.tools import OfferedTools

_V32 = HeadedJson(
    header=r"(?:>>>|\A)[ \t]*(?P<name>(?!all\b)[\w.-]+)[ \t]*\r?\n\s*(?=[{`]|\Z)", openers=(">>>",)
).scanner()
_V2 = HeadedJson(
    header=r"(?:<\|from\|>\s*assistant\s*)?<\|recipient\|>\s*(?P<name>(?!all\b)[\w.-]+)\s*<\|content\|>",
    openers=("<|recipient|>",),
    closer="<|stop|>",
    optional_close=True,
).scanner()
_IS_V32 = re.compile(r"(?:>>>|\A)[ \t]*[\w.-]+[ \t]*\r?\n\s*\{")


def _scan_v32(text: str, tools: OfferedTools) -> Found:
    """The prompt ends with the first `>>>`, so the answer's first line may be a bare name; a line of prose before some
    JSON looks the same, so that such a name counts only if it was offered."""
    found = _V32.scan(text, tools)
    bare = [call for call in found.calls if not text.startswith(">>>", call.span.start) and not tools.offers(call.name)]
    for call in bare:
        found.calls.remove(call)
        found.blocks.remove(call.span)
    return found


def _render_v32(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(f">>>{call.name}\n{dumps(call.arguments)}" for call in calls)


def _render_v2(calls: Sequence[ParsedCall]) -> str:
    return "".join(f"<|recipient|> {call.name}\n<|content|> {dumps(call.arguments)}<|stop|>" for call in calls)


FORMATS = (
    CallFormat(
        name="functionary_v32",
        title="functionary v3.2 >>>name",
        scan=_scan_v32,
        render=_render_v32,
        source="chat template of functionary-medium-v3.2",
        detector=lambda text: _IS_V32.search(text) is not None,
        markers=(">>>all\n",),
        rank=25,
        models=("functionary v3.2", "functionary small v3"),
        parsers={"llamacpp_python": ("functionary-v2",)},
    ),
    CallFormat(
        name="functionary_v2",
        title="functionary v2 <|recipient|>",
        scan=_V2.scan,
        render=_render_v2,
        source="llama-cpp-python llama_chat_format.py, functionary-v2",
        openers=("<|recipient|>",),
        markers=("<|recipient|>", "<|content|>", "<|from|>", "<|stop|>"),
        rank=25,
        models=("functionary v2",),
        parsers={"llamacpp_python": ("functionary-v2",)},
    ),
)
