"""DeepSeek: V3 (name and a fenced JSON), V3.1 (name and JSON), V3.2 and V4 (DSML markup); GigaChat 3.5 (GCML)."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.parameters import Markup

BAR = "\uff5c"
_CALLS = (f"<{BAR}tool\u2581calls\u2581begin{BAR}>", f"<{BAR}tool\u2581calls\u2581end{BAR}>")
_CALL = (f"<{BAR}tool\u2581call\u2581begin{BAR}>", f"<{BAR}tool\u2581call\u2581end{BAR}>")
_SEP = f"<{BAR}tool\u2581sep{BAR}>"
_TAG = f"{BAR}DSML{BAR}"

_V3 = HeadedJson(
    header=rf"{_CALL[0]}function{_SEP}(?P<name>[^\n<]+?)\s*(?:\n|(?=```))\s*(?=[`{{\[]|\Z)",
    openers=(_CALL[0], _CALLS[0]),
    closer=_CALL[1],
    fenced=True,
    group=_CALLS,
).scanner()
_V31 = HeadedJson(
    header=rf"{_CALL[0]}\s*(?P<name>(?!function{_SEP})[^\n<]+?)\s*{_SEP}",
    openers=(_CALL[0], _CALLS[0]),
    closer=_CALL[1],
    group=_CALLS,
).scanner()


def _dsml(group: str, tag: str) -> Markup:
    return Markup(
        call_open=rf"<{tag}invoke name=\"(?P<name>[^\"\n<>]+)\">",
        call_close=f"</{tag}invoke>",
        parameter_open=rf"<{tag}parameter name=\"(?P<name>[^\"\n<>]+)\" string=\"(?P<string>true|false)\">",
        parameter_close=f"</{tag}parameter>",
        wrap=(f"<{tag}{group}>", f"</{tag}{group}>"),
        untyped_json=True,
        loose_parameter_open=rf"<{tag}parameter name=\"?(?P<name>[^\"\n<>=]+?)\"?(?:\s+string=\"?\w*\"?)?\s*>",
    )


def _render_v3(calls: Sequence[ParsedCall]) -> str:
    blocks = (f"{_CALL[0]}function{_SEP}{c.name}\n```json\n{dumps(c.arguments)}\n```{_CALL[1]}" for c in calls)
    return _CALLS[0] + "\n".join(blocks) + _CALLS[1]


def _render_v31(calls: Sequence[ParsedCall]) -> str:
    return _CALLS[0] + "".join(f"{_CALL[0]}{c.name}{_SEP}{dumps(c.arguments)}{_CALL[1]}" for c in calls) + _CALLS[1]


def _parameter(tag: str, key: str, value: object) -> str:
    text = isinstance(value, str)
    flag = "true" if text else "false"
    return f'<{tag}parameter name="{key}" string="{flag}">{value if text else dumps(value)}</{tag}parameter>\n'


def _render_dsml(group: str, tag: str, calls: Sequence[ParsedCall]) -> str:
    blocks = "".join(
        f'<{tag}invoke name="{call.name}">\n'
        + "".join(_parameter(tag, key, value) for key, value in call.arguments.items())
        + f"</{tag}invoke>\n"
        for call in calls
    )
    return f"<{tag}{group}>\n{blocks}</{tag}{group}>"


def _dsml_format(
    name: str, title: str, group: str, source: str, *, parsers: dict[str, tuple[str, ...]], tag: str = _TAG
) -> CallFormat:
    markup = _dsml(group, tag)
    return CallFormat(
        name=name,
        title=title,
        scan=markup.scanner().scan,
        render=lambda calls: _render_dsml(group, tag, calls),
        source=source,
        openers=(f"<{tag}invoke", f"<{tag}{group}>"),
        markers=(
            f"<{tag}{group}>",
            f"</{tag}{group}>",
            f"<{tag}invoke",
            f"</{tag}invoke>",
            f"<{tag}parameter",
            f"</{tag}parameter>",
        ),
        typed=True,
        rank=13,
        models=(title.split(" (", maxsplit=1)[0],),
        parsers=parsers,
    )


_MARKERS = (*_CALLS, *_CALL, _SEP)

FORMATS = (
    CallFormat(
        name="deepseek_v3",
        title="DeepSeek V3 / R1 (fenced JSON)",
        scan=_V3.scan,
        render=_render_v3,
        source="chat templates of DeepSeek-R1-Distill, llama-cpp-deepseek-r1; vLLM deepseekv3_tool_parser",
        openers=(_CALL[0], _CALLS[0]),
        markers=_MARKERS,
        rank=13,
        models=("DeepSeek V3", "DeepSeek R1 0528", "Cogito v2"),
        parsers={"vllm": ("deepseek_v3",), "sglang": ("deepseekv3",), "ollama": ("cogito",)},
    ),
    CallFormat(
        name="deepseek_v31",
        title="DeepSeek V3.1",
        scan=_V31.scan,
        render=_render_v31,
        source="chat template of DeepSeek-V3.1",
        openers=(_CALL[0], _CALLS[0]),
        markers=_MARKERS,
        rank=13,
        models=("DeepSeek V3.1",),
        parsers={"vllm": ("deepseek_v31",), "sglang": ("deepseekv31",), "ollama": ("deepseek3",)},
    ),
    _dsml_format(
        "deepseek_v32",
        "DeepSeek V3.2 (DSML)",
        "function_calls",
        "chat template of DeepSeek-V3.2",
        parsers={"vllm": ("deepseek_v32",), "sglang": ("deepseekv32",)},
    ),
    _dsml_format(
        "deepseek_v4",
        "DeepSeek V4 (DSML)",
        "tool_calls",
        "chat template of DeepSeek-V4",
        parsers={"vllm": ("deepseek_v4", "deepseek_v41"), "sglang": ("deepseekv4", "deepseekv41")},
    ),
    _dsml_format(
        "gigachat35",
        "GigaChat 3.5 (GCML)",
        "tool_calls",
        "SGLang 0.5.23 gigachat35_detector",
        parsers={"sglang": ("gigachat35",)},
        tag=f"{BAR}GCML{BAR}",
    ),
)
