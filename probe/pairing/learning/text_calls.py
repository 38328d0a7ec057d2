"""Tools that an agent describes in its prompt and reads out of the answer's text: XML, JSON, ReAct, format markers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from probe.pairing.learning import lexicon
from probe.pairing.learning.choosing import chosen
from probe.pairing.learning.ending_words import is_ending
from probe.pairing.learning.filling import PURPOSE
from probe.pairing.learning.finishing import DONE, finish_command
from probe.pairing.learning.lexicon import words_of
from probe.pairing.learning.prompt_tools import as_schema, json_objects, json_tools, listed_tools, offered, xml_tools
from probe.pairing.learning.slots import COMMAND
from probe.pairing.learning.text_blocks import writing_module
from probe.pairing.records import Speech
from stacks.turn import OfferedTool

TOOL = "{tool}"
ARGUMENTS = "{arguments}"
"""Stand in a JSON template for the name of the tool and for its arguments."""
_FORMATS = (
    ("<tool_call>", "hermes"),
    ("✿FUNCTION✿", "qwen_agent"),
    ("[TOOL_REQUEST]", "lm_studio"),
    ("<function=", "qwen_xml"),
    ("<invoke name=", "claude_xml"),
    ("<functioncall>", "glaive"),
    ("[TOOL_CALLS]", "mistral_list"),
)
"""Markers of calls in prompts, and the format of ``stacks.formats`` that writes them."""
_NAME_KEYS = ("tool", "tool_name", "name", "function", "action", "function_name", "command")
_KIND_KEYS = (*_NAME_KEYS, "type", "kind", "op", "operation", "step")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "action_input", "tool_input", "tool_args")


def xml_speech(prompt: str) -> Speech | None:
    """``<tool><argument>value</argument></tool>`` as the prompt shows it."""
    return chosen(xml_tools(prompt), prompt, "xml", "text")


def format_speech(prompt: str) -> Speech | None:
    """Signatures in JSON and calls between markers that the prompt names (the Hermes form and its like)."""
    name = next((name for marker, name in _FORMATS if marker in prompt), None)
    if name is None:
        return None
    found = chosen(json_tools(prompt), prompt, "format", "text")
    if found is None:
        return None
    return replace(
        found, form={**found.form, "format": name}, why=f"{found.why}; the prompt asks for calls in the form {name}"
    )


def react_speech(prompt: str) -> Speech | None:
    """``Action:`` and ``Action Input:`` lines; the input is JSON where the prompt says so, else plain text."""
    label = re.search(r"^[ \t>]*(Action ?Input|Action Arguments|动作输入)\s*[:：]", prompt, re.MULTILINE)
    if label is None or not re.search(r"^[ \t>]*(Action|动作)\s*[:：]", prompt, re.MULTILINE):
        return None
    found = chosen(_named_tools(prompt), prompt, "react", "text")
    if found is None:
        return None
    about = prompt[label.start() : label.end() + 220].lower()
    as_json = "json" in about or "dictionary" in about or "{" in about.split("\n")[0]
    final = re.search(r"^[ \t>]*(Final Answer|最终答案)\s*[:：]", prompt, re.MULTILINE)
    form = {"input": label.group(1), "json": "yes" if as_json else "", "final": final.group(1) if final else ""}
    return replace(
        found, form={**found.form, **form}, why=f"{found.why}; the prompt asks for Action and {label.group(1)} lines"
    )


_LABELS = ("Action", "Thought", "Question", "Observation", "Answer", "Final", "Input", "Final Answer", "Action Input")


def _named_tools(prompt: str) -> list[OfferedTool]:
    """Tools of a ReAct prompt; where it lists the names that an action may have, those only."""
    tools = [*json_tools(prompt), *listed_tools(prompt)]
    listed = re.search(r"(?:one|name|any) of \[([^\]\n]{2,4000})\]", prompt)
    names = {name.strip(" `'\"") for name in listed.group(1).split(",")} if listed else set()
    kept = [tool for tool in tools if tool.name in names]
    return [_with_input(tool) for tool in (kept or tools) if tool.name not in _LABELS]


def _with_input(tool: OfferedTool) -> OfferedTool:
    """A tool of which no arguments are told takes one text."""
    schema = tool.parameters if isinstance(tool.parameters, Mapping) else {}
    if schema.get("properties"):
        return tool
    made = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return OfferedTool(tool.name, tool.description, made, tool.kind, tool.path, tool.raw)


def json_speech(prompt: str) -> Speech | None:
    """A JSON object as the whole answer: one that names a tool, or one that holds the command itself."""
    if "json" not in prompt.lower():
        return None
    for example in json_objects(prompt):
        template = _template(example)
        if template is None:
            continue
        blocks = re.search(r"code ?block|markdown|backtick|snippet|_BLOB|\bblob\b", prompt, re.IGNORECASE)
        shown = re.search(r"(Action\s*[:：]\s*\n\s*)?```(json)?\s*\n\s*\{", prompt)
        fence = f"{(shown.group(1) or '').strip()}\n```{shown.group(2) or ''}\n".lstrip() if shown and blocks else ""
        form = {"template": json.dumps(template, ensure_ascii=False), "open": fence, "close": "\n```" if fence else ""}
        direct = _direct(template, form, prompt)
        if direct is not None:
            return direct
        tools = [_with_input(tool) for tool in (*json_tools(prompt), *listed_tools(prompt))]
        found = chosen(tools, prompt, "json", "text") or chosen(_shown_tools(prompt, template), prompt, "json", "text")
        if found is not None:
            return replace(found, form={**found.form, **form}, why=f"{found.why}; the prompt asks for JSON objects")
    return None


def _template(example: Mapping[str, Any]) -> dict[str, Any] | None:
    """An example of a call with its tool and arguments replaced by ``TOOL`` and ``ARGUMENTS``, or its command by
    ``COMMAND``; None where the object is no call."""
    name = next((key for key in _NAME_KEYS if isinstance(example.get(key), str)), None)
    arguments = next((key for key in _ARGUMENT_KEYS if isinstance(example.get(key), dict | str)), None)
    if name and arguments and "properties" not in json.dumps(example[arguments]) and "type" not in example:
        return {**_calm(example), name: TOOL, arguments: ARGUMENTS}
    for key, value in example.items():
        words = set(words_of(key))
        if isinstance(value, dict):
            inner = _template(value)
            if inner is not None and not {"parameters", "properties", "input_schema"} & value.keys():
                return {**_calm(example), key: inner}
        elif isinstance(value, str) and len(example) <= 8 and words & (lexicon.COMMAND | {"bash", "shell", "code"}):
            return {**_calm(example), key: COMMAND}
    return None


def _shown_tools(prompt: str, template: Mapping[str, Any]) -> list[OfferedTool]:
    """The tools of which a prompt shows calls only, each call an object like ``template``."""
    name = next((key for key, value in template.items() if value == TOOL), "")
    arguments = next((key for key, value in template.items() if value == ARGUMENTS), "")
    found = []
    for example in json_objects(prompt):
        called, given = example.get(name), example.get(arguments)
        if isinstance(called, str) and re.fullmatch(r"[\w.\-]+", called) and isinstance(given, dict):
            found.append(offered(called, "", as_schema(given)))
    return found


def _calm(value: Any) -> Any:
    """An example with its texts replaced by one of our own; the name of what it does stays."""
    if isinstance(value, Mapping):
        kept = {key for key, inner in value.items() if key in _KIND_KEYS and _is_name(inner)}
        return {key: inner if key in kept else _calm(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_calm(inner) for inner in value[:1]]
    return PURPOSE if isinstance(value, str) else value


def _is_name(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.\-]{0,40}", value) is not None


def _final_object(prompt: str, template: Mapping[str, Any]) -> str:
    """The object that ends the task, where the prompt shows one beside that of a command; as JSON, or empty."""
    for key in (key for key in template if key in _KIND_KEYS):
        for example in json_objects(prompt):
            kind = example.get(key)
            if isinstance(kind, str) and kind != template[key] and is_ending(kind):
                texts = {name: DONE for name, value in example.items() if name != key and isinstance(value, str)}
                return json.dumps({**_calm(example), **texts}, ensure_ascii=False)
    return ""


def _direct(template: Mapping[str, Any], form: dict[str, str], prompt: str) -> Speech | None:
    text = json.dumps(template)
    if COMMAND not in text or TOOL in text:
        return None
    key = next(iter(_keys(template, COMMAND)), "")
    language = "python" if "code" in words_of(key) and "python" in prompt.lower() else "shell"
    if language == "python":
        form = {**form, "import": writing_module(prompt)}
    final = re.search(r"\b(final_answer)\(", prompt) if language == "python" else None
    ending = f"{final.group(1)}({DONE!r})" if final else ""
    if language == "shell":
        ending = finish_command(prompt)
        last = "" if ending else _final_object(prompt, template)
        form = {**form, "end": form["open"] + last + form["close"]} if last else form
    return Speech(
        f"JSON object with the {'Python' if language == 'python' else 'command'} in {key}",
        f"json.{language}",
        "text",
        argument=key,
        finish_command=ending,
        why=f"the prompt shows a JSON object with {key}",
        form=form,
    )


def _keys(value: Mapping[str, Any], wanted: str) -> Sequence[str]:
    found: list[str] = []
    for key, inner in value.items():
        found += [key] if inner == wanted else list(_keys(inner, wanted)) if isinstance(inner, Mapping) else []
    return found
