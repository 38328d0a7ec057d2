"""The truth table as Markdown. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from probe.canary.members import EVERY_FORMAT
from probe.truth_table.cells import Cell
from probe.truth_table.configurations import valid_members
from probe.truth_table.store import Table

_STACKS = {
    "llamacpp": "llama-server",
    "mlx_server": "mlx_lm.server",
    "llamacpp_python": "llama-cpp-python",
    "mlx_inprocess": "in-process MLX",
    "vllm": "vLLM",
    "sglang": "SGLang",
}


def stack_title(stack: str) -> str:
    """A stack's name for people."""
    return _STACKS.get(stack, stack)


def overview(tables: Sequence[Table], command: str) -> str:
    """The table of contents: a line for each configuration, with what became of the valid calls."""
    cells = [cell for table in tables for cell in table.cells]
    lines = [
        "# The truth table",
        "",
        "What real servers returned for texts that their model is known to have written. The model is a canary",
        "(`docs/canary.md`): its weights are constructed, so the left column is a fact, and whatever differs is the",
        "server's doing. Every request offers two tools and leaves the tool choice unset; temperature 0.",
        "",
        f"Made by `{command}`. {len(cells)} answers of {len(tables)} configurations; one file a stack, and the exact",
        "answers as JSON beside it. Outcomes are those of `docs/outcomes.md`, judged with the known text at hand.",
        "",
    ]
    for stack in dict.fromkeys(table.stack for table in tables):
        ours = [table for table in tables if table.stack == stack]
        versions = " / ".join(dict.fromkeys(table.version for table in ours))
        lines += [f"## [{stack_title(stack)}]({stack}.md) {versions}", ""]
        lines += ["| configuration | valid calls returned as calls | what became of the others |", "|---|---|---|"]
        lines += [_overview_row(table) for table in ours]
        lines.append("")
    return "\n".join(lines)


def _overview_row(table: Table) -> str:
    valid = [cell for cell in table.cells if cell.member in valid_members(table.canary)]
    native = sum(cell.outcome == "ok.native_call" and cell.delivery == "intact" for cell in valid)
    rest = Counter(
        _words(cell) for cell in valid if not (cell.outcome == "ok.native_call" and cell.delivery == "intact")
    )
    others = ", ".join(
        f"{count} {words}" for words, count in sorted(rest.items(), key=lambda item: (-item[1], item[0]))
    )
    return f"| {_escaped(table.title)} | {f'{native} of {len(valid)}' if valid else '-'} | {others or '-'} |"


def stack_page(tables: Sequence[Table]) -> str:
    """One stack's page: a section for each configuration, a row for each text; one grid for all that were asked for a
    call of every format, and one table for those that were asked for a single text."""
    first = tables[0]
    lines = [f"# {stack_title(first.stack)} {first.version}", ""]
    grid = [table for table in tables if table.canary == EVERY_FORMAT and len(table.texts) > 1]
    single = [table for table in tables if len(table.texts) == 1]
    if grid:
        lines += _grid(grid)
    if single:
        lines += ["## One text under other configurations", ""]
        lines += ["| configuration | the model writes | plain | streamed |", "|---|---|---|---|"]
        lines += [f"| {_escaped(table.title)} {row}" for table in single for row in _rows(table)]
        lines.append("")
    lines += ["## Every text", "", "Outcome, then what the stack did to the text (delivery), then what came.", ""]
    for table in tables:
        if table not in grid and table not in single:
            lines += _section(table)
    return "\n".join(lines)


def _section(table: Table) -> list[str]:
    lines = [f"### {table.configuration}: {_escaped(table.title)}", ""]
    if table.flags:
        lines += [f"Flags: `{' '.join(table.flags)}`", ""]
    lines += [f"| canary `{table.canary}` writes | plain | streamed |", "|---|---|---|"]
    return [*lines, *_rows(table), ""]


_SHORT = {
    "left_as_text": "text",
    "refused": "error",
    "constrained": "other call",
    "in_reasoning": "reasoning",
}


def _grid(tables: Sequence[Table]) -> list[str]:
    """Formats down, configurations across."""
    lines = ["## A good call of every format", ""]
    lines += [
        "`call`: returned as the call it is. `text`: left in the content. `other call`: the server forced another."
    ]
    lines += ["`error`: an error answer. Two words: plain, then streamed.", ""]
    lines += [f"* `{table.configuration.removeprefix('formats-')}`: {_escaped(table.title)}" for table in tables]
    names = [table.configuration.removeprefix("formats-") for table in tables]
    lines += ["", f"| the model writes | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for member in tables[0].texts:
        cells = [_short_pair(table, member) for table in tables]
        lines.append(f"| `{member}` | {' | '.join(cells)} |")
    return [*lines, ""]


def _short_pair(table: Table, member: str) -> str:
    words = list(dict.fromkeys(_short(cell) for cell in table.cells if cell.member == member))
    return ", ".join(words)


def _short(cell: Cell) -> str:
    if cell.outcome == "ok.native_call" and cell.delivery == "intact":
        return "**call**"
    if cell.outcome.startswith(("gate.", "request.", "template.")):
        return "refused"
    return _SHORT.get(cell.delivery, cell.delivery)


def _rows(table: Table) -> Iterable[str]:
    for member, text in table.texts.items():
        by_mode = {cell.mode: cell for cell in table.cells if cell.member == member}
        if not by_mode:
            continue
        plain, stream = (_shown(by_mode[mode]) if mode in by_mode else "" for mode in ("plain", "stream"))
        same = "same" if plain == stream else stream
        yield f"| {_escaped(text['about'])} (`{member}`) | {plain} | {same} |"


def _words(cell: Cell) -> str:
    constrained = " constrained" if "engine.constrained" in cell.flags and cell.delivery != "constrained" else ""
    return f"`{cell.outcome}` {cell.delivery}{constrained}"


def _shown(cell: Cell) -> str:
    came = cell.came
    parts = [_words(cell)]
    if came.status is None:
        parts.append(f"no answer ({came.ended or 'closed'})")
    elif came.status != 200:
        parts.append(f"{came.status}")
    if came.error:
        parts.append(f"error {_quoted(came.error)}")
    for name, arguments in came.calls:
        parts.append(f"call {_quoted(f'{name} {arguments}')}")
    if came.reasoning:
        parts.append(f"reasoning {_quoted(came.reasoning)}")
    if came.content:
        parts.append(f"text {_quoted(came.content)}")
    elif came.status == 200 and not came.calls and not came.error:
        parts.append("nothing")
    if came.finish:
        parts.append(f"finish {came.finish}")
    return "; ".join(parts)


_LONGEST = 90


def _quoted(text: str) -> str:
    """Text in a code span of a table cell: one line, no bars, not too long."""
    line = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").strip()
    line = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in line)
    if len(line) > _LONGEST:
        line = f"{line[:60]} ... {line[-20:]}"
    ticks = "``" if "`" in line else "`"
    pad = " " if "`" in line else ""
    return f"{ticks}{pad}{line.replace('|', chr(92) + '|')}{pad}{ticks}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
