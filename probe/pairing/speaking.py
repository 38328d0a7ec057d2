"""The steps of the walk put into words: what the canary writes at each, for every kind of speech.

A kind is a carrier and what it carries (``call.shell``, ``xml.python``, ``fence.shell``, ``edit.udiff``). Shell and
Python steps print the trigger of the next one without containing it. File steps read it from prepared files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from probe.canary.call_formats import Call, write_calls
from probe.canary.format_members import SPEECH
from probe.canary.format_members import Speech as FormatWords
from probe.canary.selfdriving import trigger_command
from probe.canary.spec import CanaryError
from probe.pairing.learning.filling import FOLDER
from probe.pairing.learning.finishing import DONE
from probe.pairing.learning.slots import COMMAND, CONTENT, FILE, placed
from probe.pairing.learning.text_calls import ARGUMENTS, TOOL
from probe.pairing.records import Speech, StepName
from stacks.formats import format_named

LOOK, WRITE, READ = "Let me look around first.", "Now I write the note.", "I read it back."
START_FILE, CHECK_FILE = "canary_start.txt", "canary_check.txt"
"""Prepared files of a walk by file tools: each holds the trigger of the step after the one that reads it."""


@dataclass(frozen=True, slots=True)
class Words:
    """One step in words: the raw ``text``, and the prose and calls that a perfect reader makes of it."""

    step: StepName
    text: str
    prose: str
    calls: tuple[Call, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Errand:
    """What the walk is about: ``nonce`` into ``file``; ``folder`` is the scratch folder where it is known (else empty);
    ``triggers`` are those of steps two, three and four, in order."""

    nonce: str
    file: str
    folder: str
    triggers: tuple[str, str, str]


def spoken(speech: Speech, errand: Errand, call_format: str) -> list[Words]:
    """The steps of the walk in the words of ``speech``; raises CanaryError when its kind is unknown."""
    carrier, _, carried = speech.kind.partition(".")
    if carrier == "edit":
        return [_edit(speech, errand, carried)]
    if carrier not in _CARRIERS or carried not in ("shell", "python", "files"):
        raise CanaryError(
            f"no writer for the speech {speech.kind!r}; there are {', '.join(sorted(_CARRIERS))} and edit"
        )
    write = _CARRIERS[carrier]
    steps = _file_steps(speech, errand) if carried == "files" else _command_steps(speech, errand, carried)
    words = [write(speech, call_format, step) for step in steps]
    return [*words, _finish(speech, call_format, write, errand)]


def prepared_files(speech: Speech, errand: Errand) -> dict[str, str]:
    """Files that must stand in the scratch folder before the walk."""
    if not speech.kind.endswith(".files"):
        return {}
    look, _, read = errand.triggers
    return {START_FILE: f"[[{look}]]\n", CHECK_FILE: f"[[{read}]]\n"}


def extra_triggers(speech: Speech, errand: Errand) -> dict[str, str]:
    """Texts beside ``[[name]]`` that lead to a step: a file tool's answer to a write shows nothing of ours, so the
    nonce in the call itself leads from the writing step to the next."""
    return {errand.nonce: errand.triggers[1]} if speech.kind.endswith(".files") else {}


@dataclass(frozen=True, slots=True)
class _Step:
    step: StepName
    say: str
    call: Call
    command: str


def _command_steps(speech: Speech, errand: Errand, carried: str) -> Iterator[_Step]:
    second, third, fourth = errand.triggers
    if carried == "shell":
        commands = [
            ("look", LOOK, trigger_command("ls", second)),
            ("write", WRITE, trigger_command(f"echo {errand.nonce} > {errand.file}", third)),
            ("read", READ, trigger_command(f"cat {errand.file}", fourth)),
        ]
    else:
        commands = list(zip(("look", "write", "read"), (LOOK, WRITE, READ), _python(speech, errand), strict=True))
    for step, say, command in commands:
        yield _Step(step, say, _call(speech, command, errand), command)  # type: ignore[arg-type]


def _call(speech: Speech, command: str, errand: Errand) -> Call:
    values = {COMMAND: command, **({FOLDER: errand.folder} if errand.folder else {})}
    alone = speech.argument and speech.argument not in speech.extra
    shaped = {speech.argument: COMMAND, **speech.extra} if alone else dict(speech.extra)
    return speech.tool, placed(shaped, values)


_PYTHON = {
    "open": (
        "import os\nprint(os.listdir())",
        "with open('{file}', 'w') as note:\n    print('{nonce}', file=note)",
        "print(open('{file}').read())",
    ),
    "io": (
        "import io",
        "import io\nwith io.open('{file}', 'w') as note:\n    note.write('{nonce}')",
        "import io\nprint(io.open('{file}').read())",
    ),
    "os": (
        "import os\nprint(os.listdir())",
        "import os\nos.system('echo {nonce} > {file}')",
        "import os\nprint(os.popen('cat {file}').read())",
    ),
    "subprocess": (
        "import subprocess\nprint(subprocess.getoutput('ls'))",
        "import subprocess\nsubprocess.getoutput('echo {nonce} > {file}')",
        "import subprocess\nprint(subprocess.getoutput('cat {file}'))",
    ),
    "pathlib": (
        "import pathlib\nprint(pathlib.Path().absolute())",
        "import pathlib\npathlib.Path('{file}').write_text('{nonce}')",
        "import pathlib\nprint(pathlib.Path('{file}').read_text())",
    ),
}
"""Look, write, read, by the module that the agent's interpreter allows; each stands alone, for not all keep a state."""


def _python(speech: Speech, errand: Errand) -> tuple[str, str, str]:
    """Statements of Python for the three steps; ``form["import"]`` says what a restricted interpreter may use."""
    module = speech.form.get("import", "open")
    if module == "none":
        raise CanaryError(
            f"{speech.name}: the agent allows its Python no module that writes a file; allow it pathlib "
            "(smolagents: additional_authorized_imports)"
        )
    shows = [f"print('[' + '[{trigger}]]')" for trigger in errand.triggers]
    look, write, read = (text.format(file=errand.file, nonce=errand.nonce) for text in _PYTHON[module])
    return f"{look}\n{shows[0]}", f"{write}\n{shows[1]}", f"{read}\n{shows[2]}"


def _file_steps(speech: Speech, errand: Errand) -> Iterator[_Step]:
    folder = {FOLDER: errand.folder} if errand.folder else {}

    def call(way: str, file: str) -> Call:
        found = speech.extra[way]
        return found["tool"], placed(found["arguments"], {FILE: file, CONTENT: errand.nonce, **folder})

    yield _Step("look", LOOK, call("read", START_FILE), START_FILE)
    yield _Step("write", WRITE, call("write", errand.file), errand.file)
    yield _Step("read", READ, call("read", CHECK_FILE), CHECK_FILE)


_Writer = Callable[[Speech, str, _Step], Words]


def _finish(speech: Speech, call_format: str, write: _Writer, errand: Errand) -> Words:
    if speech.finish_tool:
        call = (speech.finish_tool, placed(speech.finish_arguments, {FOLDER: errand.folder} if errand.folder else {}))
        return write(speech, call_format, _Step("finish", "", call, ""))
    if speech.finish_command:
        call = _call(speech, speech.finish_command, errand)
        return write(speech, call_format, _Step("finish", "I am done.", call, speech.finish_command))
    if speech.kind.startswith("call."):
        return Words("finish", _words_of(call_format).answer(DONE), DONE)
    if speech.form.get("end"):
        return Words("finish", speech.form["end"], speech.form["end"])
    final = speech.form.get("final")
    text = f"Thought: All is done.\n{final}: {DONE}" if final else DONE
    return Words("finish", text, text)


def _words_of(call_format: str) -> FormatWords:
    return SPEECH.get(call_format, FormatWords())


def _as_call(speech: Speech, call_format: str, step: _Step) -> Words:
    body = write_calls(call_format, [step.call])
    entry = format_named(call_format)
    prose = step.say if entry.delimited or entry.tail_stands else ""
    text = _words_of(call_format).say(prose) + body if prose else body
    return Words(step.step, text, prose, (step.call,), step.command)


def _said(step: _Step, body: str) -> Words:
    text = f"{step.say}\n{body}" if step.say else body
    return Words(step.step, text, text, (), step.command)


def _as_block(speech: Speech, call_format: str, step: _Step) -> Words:
    say = f"Thought: {step.say or 'I am done.'}"
    body = f"{say}\n\n{speech.form['open']}{step.command}{speech.form['close']}"
    return Words(step.step, body, body, (), step.command)


def _as_line(speech: Speech, call_format: str, step: _Step) -> Words:
    return _said(step, f"{speech.form['open']}{step.command}{speech.form['close']}")


def _as_xml(speech: Speech, call_format: str, step: _Step) -> Words:
    name, arguments = step.call
    inner = "".join(f"<{key}>{_plain(value)}</{key}>\n" for key, value in arguments.items())
    return _said(step, f"<{name}>\n{inner}</{name}>")


def _as_format(speech: Speech, call_format: str, step: _Step) -> Words:
    return _said(step, write_calls(speech.form["format"], [step.call]))


def _as_react(speech: Speech, call_format: str, step: _Step) -> Words:
    name, arguments = step.call
    single = next(iter(arguments.values()), "") if len(arguments) == 1 else None
    given = single if isinstance(single, str) and not speech.form.get("json") else _json(arguments)
    text = f"Thought: {step.say or 'I am done.'}\nAction: {name}\n{speech.form['input']}: {given}"
    return Words(step.step, text, text, (), step.command)


def _as_json(speech: Speech, call_format: str, step: _Step) -> Words:
    name, arguments = step.call
    template = json.loads(speech.form["template"])
    filled = _filled(template, {TOOL: name, ARGUMENTS: dict(arguments), COMMAND: step.command})
    text = f"{speech.form.get('open', '')}{_json(filled)}{speech.form.get('close', '')}"
    return Words(step.step, text, text, (), step.command)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        return values.get(template, template)
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    return [_filled(value, values) for value in template] if isinstance(template, list) else template


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_CARRIERS: dict[str, _Writer] = {
    "call": _as_call,
    "fence": _as_block,
    "tag": _as_block,
    "line": _as_line,
    "block": _as_block,
    "xml": _as_xml,
    "format": _as_format,
    "react": _as_react,
    "json": _as_json,
}


def _edit(speech: Speech, errand: Errand, form: str) -> Words:
    """The one answer of an agent that edits files by blocks: the new file with the nonce."""
    fence, file, nonce = speech.form["fence"], errand.file, errand.nonce
    closing = f"</{fence[1:]}" if fence.startswith("<") else fence
    if form == "udiff":
        body = f"{fence}diff\n--- /dev/null\n+++ {file}\n@@ ... @@\n+{nonce}\n{fence}"
    elif form == "patch":
        body = f"*** Begin Patch\n*** Add File: {file}\n+{nonce}\n*** End Patch"
    elif form == "whole":
        body = f"{file}\n{fence}\n{nonce}\n{closing}"
    elif form == "search_replace":
        marks = speech.form
        block = f"{marks['search']}\n{marks['divider']}\n{nonce}\n{marks['replace']}"
        opening = fence + "text" if fence.startswith(("`", "~")) else fence
        if not fence:
            body = f"{file}\n{block}"
        elif marks["place"] == "inside":
            body = f"{opening}\n{file}\n{block}\n{closing}"
        else:
            body = f"{file}\n{opening}\n{block}\n{closing}"
    else:
        raise CanaryError(f"no writer for edits as {form!r}; there are search_replace, udiff, patch and whole")
    text = f"{WRITE}\n\n{body}\n"
    return Words("write", text, text, (), body)
