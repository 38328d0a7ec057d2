"""Tools that a prompt describes in words: JSON signatures, XML usages, lists of names with descriptions.

Each becomes an offered tool with a schema as far as the prompt tells, so that it is weighed like one of a request.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from probe.pairing.learning.schemas import properties_of
from probe.pairing.learning.told_values import told_schema
from stacks.turn import OfferedTool

_MOST_JSON = 400
_NAME = r"[A-Za-z_\u0080-\uffff][\w.\-]*"
_BESIDE = re.compile(
    rf"^[ \t#>*\-\d.]*({_NAME})\s*[:：]\s*(.{{0,2000}}?)"
    r"(?:Parameters|Arguments|Args|输入参数|参数)\s*[:：]\s*(?=[\[{])",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED = re.compile(rf"Tool Name:\s*({_NAME}[^\n]*)\n(?:Tool Arguments:\s*([^\n]*)\n)?Tool Description:\s*([^\n]*)")
_LINE = re.compile(
    rf"^[ \t>*\-\d.]*[`\"*]*({_NAME})[`\"*]*(\([^)\n]*\))?(?:\s*->\s*[\w\[\], .]+)?\s*(?::|-|–|：)\s+"
    r"([^\n]{3,600})$",
    re.MULTILINE,
)
_DEFINED = re.compile(
    rf'^\s*(?:async )?def ({_NAME})\(([^)\n]*)\)[^\n]*:\s*\n\s*"""(.*?)(?:\n|""")', re.MULTILINE | re.DOTALL
)


def offered(name: str, description: str, schema: Mapping[str, Any]) -> OfferedTool:
    """A tool of a prompt as one of a request."""
    return OfferedTool(name, description.strip(), dict(schema), "function", (), None)


def json_objects(prompt: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands in a text, outermost ones only."""
    decoder, position, tries = json.JSONDecoder(), 0, 0
    while (position := prompt.find("{", position)) >= 0 and tries < _MOST_JSON:
        tries += 1
        try:
            value, end = decoder.raw_decode(prompt, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        position = end
        if isinstance(value, dict):
            yield value


def json_tools(prompt: str) -> list[OfferedTool]:
    """Tools given as JSON: signatures as in a request, or the arguments' schema beside a name in words."""
    found = [one for value in json_objects(prompt) for one in _signatures(value)]
    for match in _BESIDE.finditer(prompt):
        try:
            value, _ = json.JSONDecoder().raw_decode(prompt, match.end())
        except (ValueError, RecursionError):
            continue
        found.append(offered(match.group(1), match.group(2), as_schema(value)))
    return found


def _signatures(value: dict[str, Any]) -> Iterator[OfferedTool]:
    function = value.get("function") if isinstance(value.get("function"), dict) else value
    assert isinstance(function, dict)
    name = function.get("name")
    schema = function.get("parameters", function.get("input_schema", function.get("args_schema")))
    if isinstance(name, str) and name and isinstance(schema, dict | list):
        description = function.get("description")
        yield offered(name, description if isinstance(description, str) else "", as_schema(schema))
        return
    for part in [one for inner in value.values() if isinstance(inner, list) for one in inner][:200]:
        if isinstance(part, dict) and part is not value:
            yield from _signatures(part)


def as_schema(value: Any) -> dict[str, Any]:
    """A schema from a schema, from bare properties (``{"cmd": {"type": ...}}``), or from a list of named parameters."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict) and isinstance(part.get("name"), str)]
        needed = [part["name"] for part in parts if part.get("required") is True]
        made = {part["name"]: part.get("schema", {k: v for k, v in part.items() if k != "required"}) for part in parts}
        return {"type": "object", "properties": made, "required": needed}
    if not isinstance(value, dict):
        return {"type": "object", "properties": {}}
    if properties_of(value) or value.get("type") == "object":
        return value
    made = {str(key): part if isinstance(part, dict) else _told(part) for key, part in value.items()}
    return {"type": "object", "properties": made, "required": list(made)}


def _told(shown: Any) -> dict[str, Any]:
    return {"type": "boolean"} if isinstance(shown, bool) else told_schema(str(shown), str(shown))


def xml_tools(prompt: str) -> list[OfferedTool]:
    """Tools whose use is shown as XML: a tag named like the tool around one tag for each argument."""
    found: dict[str, dict[str, Any]] = {}
    shows: dict[tuple[str, str], str] = {}
    tag = r"[A-Za-z_][\w\-]*"
    for match in re.finditer(rf"<({tag})>\s*((?:<({tag})>.*?</\3>\s*){{1,12}})</\1>", prompt, re.DOTALL):
        inner = re.findall(rf"<({tag})>(.*?)</\1>", match.group(2), re.DOTALL)
        properties = found.setdefault(match.group(1), {})
        for name, shown in inner:
            properties.setdefault(name, told_schema("", shown[:120]))
            shows.setdefault((match.group(1), name), shown)
    return [
        _xml_tool(prompt, name, properties, {of[1]: shown for of, shown in shows.items() if of[0] == name})
        for name, properties in found.items()
    ]


def _xml_tool(prompt: str, name: str, properties: dict[str, Any], shows: Mapping[str, str]) -> OfferedTool:
    """With the section of the prompt that bears its name: description, and which parameters are required."""
    head = re.search(rf"^[#*\s\d.]*`?{re.escape(name)}`?[*:]*\s*$", prompt, re.MULTILINE)
    section = prompt[head.end() : head.end() + 3000] if head else ""
    section = re.split(r"\n#{1,4} ", section)[0]
    described = re.search(r"Description:\s*(.+)", section)
    needed = []
    for parameter in properties:
        line = re.search(rf"^\s*[-*]?\s*`?{re.escape(parameter)}`?\s*:\s*(.*)$", section, re.MULTILINE)
        if line:
            properties[parameter] = told_schema(line.group(1), shows.get(parameter, ""))
        if line is None or not re.search(r"\boptional\b", line.group(1)[:40], re.IGNORECASE):
            needed.append(parameter)
    about = described.group(1) if described else section.strip().split("\n", 1)[0]
    return offered(name, about, {"type": "object", "properties": properties, "required": needed})


def listed_tools(prompt: str) -> list[OfferedTool]:
    """Tools of a list in words: ``name: what it does, args: {...}``, ``Tool Name: ...``, ``name(arg: str) -> str``."""
    found = [_listed(match.group(1), match.group(3), match.group(2) or "") for match in _NAMED.finditer(prompt)]
    for match in _LINE.finditer(prompt):
        about, arguments = _parted(match.group(3))
        found.append(_listed(match.group(1), about, arguments or match.group(2) or ""))
    found += [_listed(match.group(1), match.group(3), f"({match.group(2)})") for match in _DEFINED.finditer(prompt)]
    return found


def _parted(text: str) -> tuple[str, str]:
    """What a tool does, and the arguments that stand behind it."""
    match = re.search(r",?\s*(?:args|arguments|params|parameters|input)\s*[:：]\s*(.*)$", text, re.IGNORECASE)
    return (text[: match.start()], match.group(1)) if match else (text, "")


def _listed(name: str, about: str, arguments: str) -> OfferedTool:
    return offered(name.strip(), about, as_schema(_arguments(arguments)))


def _arguments(text: str) -> dict[str, Any]:
    """Arguments from ``{...}`` (JSON or a Python literal), ``"cmd": "<cmd>", ...`` or ``(cmd: str, cwd: str = '')``."""
    text = text.strip()
    if text.startswith("("):
        parts = [part.split("=")[0].partition(":") for part in text.strip("()").split(",") if "=" not in part]
        kinds = {"int": "integer", "float": "number", "bool": "boolean"}
        return {name.strip(): {"type": kinds.get(kind.strip(), "string")} for name, _, kind in parts if name.strip()}
    for read in (json.loads, ast.literal_eval):
        for form in (text, "{" + text + "}"):
            try:
                value = read(form)
            except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
                continue
            if isinstance(value, dict):
                return {str(key): part for key, part in value.items()}
    return {}
