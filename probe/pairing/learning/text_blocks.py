"""Protocols without tools: fenced shell or Python blocks, tags around a command, edit blocks; read from the prompt."""

from __future__ import annotations

import re
from collections import Counter

from probe.pairing.learning import lexicon
from probe.pairing.learning.ending_words import SAID, ending_form
from probe.pairing.learning.finishing import DONE, finish_command
from probe.pairing.learning.lexicon import words_of
from probe.pairing.records import Speech

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([\w.+\-]*)[ \t]*$", re.MULTILINE)
_EXECUTED = re.compile(
    r"\b(execut|run\b|runs\b|running|ran\b|invoke|perform)|执行|运行|実行|실행|выполн|ausgef|ejecut|exécut",
    re.IGNORECASE,
)
_SHELL_MEANT = re.compile(r"shell|bash|\bsh\b|terminal|command|console", re.IGNORECASE)
_PLACE = re.compile(r"[<\[{(]|\.\.\.|[a-z]+ -|the |your |a ")
"""Where a command goes, in an example. One word alone is none after `Shell:`, which tells what shell there is."""
_OPENING = r"(`{3,}|~{3,}|<source>|<code>|<pre>|<codeblock>|<sourcecode>)"
_FINAL = re.compile(r"\b(final_answer|submit_answer|finish|done)\(", re.IGNORECASE)
_MODULES = re.compile(
    r"(?:list of modules|python libraries|authorized imports|allowed imports|import only)[^\[\n]{0,80}(\[[^\]]*\])"
)
_ANY_MODULE = re.compile(r"import from any package|any module|all imports", re.IGNORECASE)
_WRITING_MODULES = ("pathlib", "io", "os", "subprocess")


def edit_block(prompt: str) -> Speech | None:
    """SEARCH/REPLACE blocks, in the markers, fence and place of the file's name that the prompt shows."""
    marks = re.search(r"^(<{5,9} ?SEARCH|-{5,9} ?SEARCH)$", prompt, re.MULTILINE)
    middle = re.search(r"^={5,9}$", prompt, re.MULTILINE)
    end = re.search(r"^(>{5,9} ?REPLACE|\+{5,9} ?REPLACE)$", prompt, re.MULTILINE)
    if not marks or not middle or not end:
        return None
    form = {
        "search": marks.group(1),
        "divider": middle.group(0),
        "replace": end.group(1),
        "fence": "",
        "place": "before",
    }
    before = re.search(rf"^([^\n]*)\n([^\n]*)\n{re.escape(marks.group(1))}$", prompt, re.MULTILINE)
    if before:
        upper, lower = before.group(1).strip(), before.group(2).strip()
        fence, inside = re.match(_OPENING, lower), re.match(_OPENING, upper)
        if fence:
            form |= {"fence": fence.group(1), "place": "before"}
        elif inside:
            form |= {"fence": inside.group(1), "place": "inside"}
    return Speech(
        "SEARCH/REPLACE blocks",
        "edit.search_replace",
        "text",
        why=f"the prompt shows {marks.group(1)}",
        form=form,
    )


def patch_edit(prompt: str) -> Speech | None:
    """Unified diffs, or patches between ``*** Begin Patch`` and ``*** End Patch``."""
    if re.search(r"unified diff", prompt, re.IGNORECASE) and re.search(r"^--- \S+\n\+\+\+ \S+", prompt, re.MULTILINE):
        why = "the prompt asks for unified diffs"
        return Speech("unified diffs", "edit.udiff", "text", why=why, form={"fence": "```"})
    if "*** Begin Patch" in prompt and "*** Add File:" in prompt:
        why = "the prompt shows *** Begin Patch and *** Add File"
        return Speech("patch envelopes", "edit.patch", "text", why=why, form={"fence": ""})
    return None


def whole_files(prompt: str) -> Speech | None:
    """Whole files under their names, where the prompt asks for them."""
    named = re.search(rf"^[\w./-]+\.\w{{1,5}}\n{_OPENING}\w*\n", prompt, re.MULTILINE)
    asked = re.search(r"file listing|entire (content|file)|whole file|full content", prompt, re.IGNORECASE)
    if named and asked:
        why = "the prompt asks for whole files under their names"
        return Speech("whole files", "edit.whole", "text", why=why, form={"fence": named.group(1)})
    return None


def command_tag(prompt: str) -> Speech | None:
    """A tag whose content is run: ``<bash>ls</bash>``, ``<execute_bash>...</execute_bash>``."""
    found: Counter[str] = Counter()
    for match in re.finditer(r"<([A-Za-z_][\w\-]*)>([^<]{1,4000}?)</\1>", prompt):
        words = set(words_of(match.group(1)))
        says_shell = words & lexicon.SHELL or (
            words & lexicon.RUN and not words & (lexicon.OTHER_LANGUAGES | lexicon.PYTHON)
        )
        if (says_shell or words & lexicon.COMMAND) and not words & lexicon.NOT_RUNNING - {"input"}:
            found[match.group(1)] += 2 if words & lexicon.SHELL else 1
    if not found or not _EXECUTED.search(prompt):
        return None
    tag = found.most_common(1)[0][0]
    return Speech(
        f"commands between <{tag}> tags",
        "tag.shell",
        "text",
        tool=tag,
        finish_command=finish_command(prompt),
        why=f"the prompt shows a command between <{tag}> and </{tag}>",
        form=_with_end({"open": f"<{tag}>\n", "close": f"\n</{tag}>"}, prompt, finish_command(prompt)),
    )


def command_line(prompt: str) -> Speech | None:
    """A line that begins with a label: ``RUN: ls``, where the prompt says that it is run."""
    if not _EXECUTED.search(prompt):
        return None
    for match in re.finditer(
        r"^[ \t>*\-`]*([A-Z][A-Za-z_]{1,14}(?: [A-Za-z]{2,10})?)[ \t]*:[ \t]+(\S[^\n]*)$", prompt, re.M
    ):
        words = set(words_of(match.group(1)))
        runs = words & (lexicon.SHELL | lexicon.COMMAND) or words <= lexicon.RUN
        plain = words <= lexicon.SHELL | lexicon.COMMAND | lexicon.RUN
        if (
            runs
            and plain
            and (_PLACE.match(match.group(2)) or (not words <= lexicon.SHELL and re.fullmatch(r"\w+", match.group(2))))
            and _SHELL_MEANT.search(prompt)
        ):
            command = finish_command(prompt)
            return Speech(
                f"lines that begin with {match.group(1)}:",
                "line.shell",
                "text",
                tool=match.group(1),
                finish_command=command,
                why=f"the prompt shows a line {match.group(1)}: and says that it is run",
                form=_with_end({"open": f"{match.group(1)}: ", "close": ""}, prompt, command),
            )
    return None


def fenced_shell(prompt: str) -> Speech | None:
    """Fenced blocks in a shell's language that the prompt says are run."""
    counted: Counter[tuple[str, str]] = Counter()
    for fence, language in _openings(prompt):
        words = set(words_of(language))
        runs = words & lexicon.SHELL or (
            words and words <= lexicon.RUN | lexicon.COMMAND and _SHELL_MEANT.search(prompt)
        )
        if runs and not words & lexicon.NOT_RUNNING:
            counted[fence, language] += 1
    for language in re.findall(r"`{3,}(\w+)`{0,3}[\s,.)]", prompt):
        if set(words_of(language)) & lexicon.SHELL:
            counted["```", language] += 1
    if not _EXECUTED.search(prompt):
        return None
    told = re.search(r"(markdown|fenced|triple.backtick)\W+(\w+\W+){0,2}code\s*blocks?", prompt, re.IGNORECASE)
    shell = re.search(r"\b(bash|shell|sh)\b", prompt)
    if not counted and told and shell:
        counted["```", shell.group(1)] += 1
    if not counted:
        return None
    # A language that no one uses but this agent is its own marker, however often plain ones stand in examples.
    (fence, language), _ = max(counted.items(), key=lambda one: (_own_marker(one[0][1]), one[1]))
    return Speech(
        f"fenced {language} block",
        "fence.shell",
        "text",
        tool=language,
        finish_command=finish_command(prompt),
        why=f"the prompt shows {fence}{language} blocks and says that they are run",
        form=_with_end({"open": f"{fence}{language}\n", "close": f"\n{fence}"}, prompt, finish_command(prompt)),
    )


def python_block(prompt: str, *, sure: bool) -> Speech | None:
    """Python between ``<code>`` tags or in a fence. ``sure``: only where the prompt names a final call, or tags."""
    tagged = re.search(r"<(code|python|execute_ipython|execute_python)>\n?.*?</\1>", prompt, re.DOTALL)
    fence = next((one for one in _openings(prompt) if set(words_of(one[1])) & lexicon.PYTHON), None)
    final = _FINAL.search(prompt)
    named = re.search(r"opened with '([^'\n]{3,24})', and closed with '([^'\n]{3,24})'", prompt)
    if named:
        form = {"open": named.group(1) + "\n", "close": "\n" + named.group(2)}
    elif tagged and (final or _EXECUTED.search(prompt)):
        form = {"open": f"<{tagged.group(1)}>\n", "close": f"\n</{tagged.group(1)}>"}
    elif fence and (final or (not sure and _EXECUTED.search(prompt))):
        form = {"open": f"{fence[0]}{fence[1]}\n", "close": f"\n{fence[0]}"}
    else:
        return None
    form["import"] = writing_module(prompt)
    marks = form["open"].strip()
    return Speech(
        f"Python in {marks} blocks",
        "block.python",
        "text",
        tool="python",
        finish_command=f"{final.group(1)}({DONE!r})" if final else "",
        why=f"the prompt shows Python in {marks} blocks" + (f" and ends by {final.group(1)}" if final else ""),
        form=form,
    )


def writing_module(prompt: str) -> str:
    """The module to write a file with: ``open`` where imports are free, the first allowed one that can, or ``none``."""
    listed = _MODULES.search(prompt)
    if listed is None:
        return "pathlib" if _ANY_MODULE.search(prompt) else "open"
    names = set(re.findall(r"[\w.*]+", listed.group(1)))
    if "*" in names:
        return "pathlib"
    return next((name for name in _WRITING_MODULES if name in names), "none")


def _own_marker(language: str) -> bool:
    return len(words_of(language)) > 1 or bool(set(words_of(language)) & (lexicon.RUN | lexicon.COMMAND))


def _with_end(form: dict[str, str], prompt: str, command: str) -> dict[str, str]:
    """The form with the words that end the task, where no command does."""
    end = "" if command else ending_form(prompt).replace(SAID, DONE)
    return {**form, "end": end} if end else form


def _openings(prompt: str) -> list[tuple[str, str]]:
    """(fence, language) of every opening fence, at any indentation."""
    found, inside = [], ""
    for match in _FENCE.finditer(prompt):
        fence, language = match.groups()
        if inside and fence.startswith(inside) and not language:
            inside = ""
        else:
            inside = fence
            found.append((fence, language))
    return found
