"""The page of diagnoses, as Markdown, from the transcripts on record. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = """# Broken set-ups, and what `stacktap diagnose` said of them

Each set-up below was built for real on loopback: server, gateway, client. The model is a known-answer model
([canary.md](canary.md)), so whose fault it is was known beforehand. `stacktap diagnose` was run on it, the remedy it
printed was applied, and it was run again. How a verdict is reached: [diagnose.md](diagnose.md).

Made by `make diagnoses` from `results/published/diagnoses/`, one file a set-up (`make diagnoses SETUPS="raw key"` runs
some of them again). Ports, paths, run names and times are replaced by words: PORT, SERVER_PORT (the server behind a
gateway), MODEL.gguf, RUN, TIME. Ollama's server is replayed from true captures, and labelled so.
"""


def page(transcripts: Sequence[Mapping[str, Any]]) -> str:
    """The whole page: an index, then each set-up with both transcripts."""
    healed = sum(bool(each["healed"]) for each in transcripts)
    lines = [_HEAD, f"{len(transcripts)} set-ups, {healed} of them healed by the remedy that was printed.", ""]
    lines += ["| set-up | verdict | at fault | evidence | change | healed |", "|---|---|---|---|---|---|"]
    lines += [_row(each) for each in transcripts]
    for each in transcripts:
        lines += ["", *_section(each)]
    return "\n".join(lines) + "\n"


def _row(each: Mapping[str, Any]) -> str:
    cells = (
        f"[{each['name']}](#{each['name']}): {each['title']}",
        f"`{each['verdict']}`",
        each["at_fault"],
        each["grade"],
        each["remedy"],
        "yes" if each["healed"] else "**no**",
    )
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"


def _section(each: Mapping[str, Any]) -> list[str]:
    lines = [f"## {each['name']}", "", f"{each['title']}.", ""]
    lines += [f"- {part}: {words}" for part, words in each["broken"].items()]
    lines += ["", *_fenced(each["command_before"], each["before"]), "", "With the change:", ""]
    lines += [f"- {part}: {words}" for part, words in each["mended"].items()]
    lines += [f"- {part}: none" for part in each["removed"]]
    if not each["mended"] and not each["removed"]:
        lines.append(f"- `{each['command_after']}`")
    return [*lines, "", *_fenced(each["command_after"], each["after"])]


def _fenced(command: str, said: str) -> list[str]:
    return ["````text", f"$ {command}", *said.splitlines(), "````"]
