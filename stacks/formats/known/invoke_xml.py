"""`<invoke name="...">` markup and its relatives: MiniMax M2, Muse (ATEM), dots, Step 3, Seed-OSS, MiniCPM 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.parameters import NAME, Markup

Renderer = Callable[[Sequence[ParsedCall]], str]
_LOOSE_NAME = r"(?P<name>[^'\"\s<>](?:[^'\"\n<>]{0,198}?[^'\"\s<>])??)"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _invoke(prefix: str, wrap: tuple[str, str]) -> Markup:
    return Markup(
        call_open=rf"<{prefix}invoke name=\"(?P<name>[^\"\n<>]+)\">",
        call_close=f"</{prefix}invoke>",
        parameter_open=rf"<{prefix}parameter name=\"(?P<name>[^\"\n<>]+)\">",
        parameter_close=f"</{prefix}parameter>",
        wrap=wrap,
        loose_call_open=rf"<{prefix}invoke\s+name\s{{0,9}}=\s{{0,9}}['\"]?{_LOOSE_NAME}['\"]?\s{{0,9}}>",
        loose_parameter_open=rf"<{prefix}parameter\s+name\s{{0,9}}=\s{{0,9}}['\"]?{_LOOSE_NAME}"
        r"(?:['\"][^<>\n]{0,200}|\s{1,9}[\w-]{1,40}=[^<>\n]{0,200}|\s{0,9})>",
    )


def _render_invoke(prefix: str, wrap: tuple[str, str]) -> Renderer:
    def render(calls: Sequence[ParsedCall]) -> str:
        blocks = "".join(
            f'<{prefix}invoke name="{call.name}">\n'
            + "".join(
                f'<{prefix}parameter name="{key}">{_text(value)}</{prefix}parameter>\n'
                for key, value in call.arguments.items()
            )
            + f"</{prefix}invoke>\n"
            for call in calls
        )
        return f"{wrap[0]}\n{blocks}{wrap[1]}"

    return render


def _format(name: str, title: str, prefix: str, wrap: tuple[str, str], **more: Any) -> CallFormat:
    return CallFormat(
        name=name,
        title=title,
        scan=_invoke(prefix, wrap).scanner().scan,
        render=_render_invoke(prefix, wrap),
        markers=(
            *wrap,
            f"<{prefix}invoke name=",
            f"</{prefix}invoke>",
            f"<{prefix}parameter name=",
            f"</{prefix}parameter>",
        ),
        openers=(f"<{prefix}invoke", wrap[0]) if prefix or ":" in wrap[0] else (f"<{prefix}invoke",),
        typed=False,
        **more,
    )


_BAR = "\uff5c"
_STEP3_BEFORE = f"<{_BAR}tool_call_begin{_BAR}>function<{_BAR}tool_sep{_BAR}>"
_STEP3_AFTER = f"<{_BAR}tool_call_end{_BAR}>"
_STEP3_WRAP = (f"<{_BAR}tool_calls_begin{_BAR}>", f"<{_BAR}tool_calls_end{_BAR}>")
_STEP3 = Markup(
    call_open=rf"(?:{_STEP3_BEFORE})?<steptml:invoke name=\"(?P<name>[^\"\n<>]+)\">",
    call_close=f"</steptml:invoke>{_STEP3_AFTER}",
    parameter_open=r"<steptml:parameter name=\"(?P<name>[^\"\n<>]+)\">",
    parameter_close="</steptml:parameter>",
    wrap=_STEP3_WRAP,
)


def _render_step3(calls: Sequence[ParsedCall]) -> str:
    blocks = "".join(
        f'{_STEP3_BEFORE}<steptml:invoke name="{call.name}">\n'
        + "".join(
            f'<steptml:parameter name="{key}">{_text(value)}</steptml:parameter>\n'
            for key, value in call.arguments.items()
        )
        + f"</steptml:invoke>{_STEP3_AFTER}\n"
        for call in calls
    )
    return f"{_STEP3_WRAP[0]}\n{blocks}{_STEP3_WRAP[1]}"


_SEED = Markup(
    call_open=rf"<function=(?P<name>{NAME})>",
    call_close="</function>",
    parameter_open=r"<parameter=(?P<name>[^<>\n]+)>",
    parameter_close="</parameter>",
    wrap=("<seed:tool_call>", "</seed:tool_call>"),
    wrap_each=True,
)
_MINICPM = Markup(
    call_open=r"<function name=\"(?P<name>[^\"\n<>]+)\">",
    call_close="</function>",
    parameter_open=r"<param name=\"(?P<name>[^\"\n<>]+)\">",
    parameter_close="</param>",
    untyped_json=False,
    cdata=True,
)


def _render_seed(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(
        f"<seed:tool_call>\n<function={call.name}>\n"
        + "".join(f"<parameter={key}>{_text(value)}</parameter>\n" for key, value in call.arguments.items())
        + "</function>\n</seed:tool_call>"
        for call in calls
    )


def _cdata(value: Any) -> str:
    marked = isinstance(value, str) and any(mark in value for mark in "<&\n")
    return f"<![CDATA[{value}]]>" if marked else _text(value)


def _render_minicpm(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(
        f'<function name="{call.name}">'
        + "".join(f'<param name="{key}">{_cdata(value)}</param>' for key, value in call.arguments.items())
        + "</function>"
        for call in calls
    )


FORMATS = (
    _format(
        "minimax_m2",
        "MiniMax M2",
        "",
        ("<minimax:tool_call>", "</minimax:tool_call>"),
        source="chat template of MiniMax-M2",
        rank=13,
        models=("MiniMax M2",),
        parsers={"vllm": ("minimax_m2",), "sglang": ("minimax-m2",), "mlx_server": ("minimax_m2",)},
    ),
    _format(
        "muse_atem",
        "Muse ATEM",
        "atem:",
        ("<atem:function_calls>", "</atem:function_calls>"),
        source="chat template muse-glimmer",
        rank=13,
        models=("Muse Glimmer",),
        parsers={
            "vllm": ("muse", "muse_glimmer"),
            "sglang": ("muse",),
            "ollama": ("glimmer",),
            "mlx_server": ("muse_spark",),
        },
    ),
    replace(
        _format(
            "dots",
            "dots <dots_function_call>",
            "",
            ("<dots_function_call>", "</dots_function_call>"),
            source="SGLang 0.5.23 dots_detector, vLLM 0.32.0 dots_tool_parser",
            rank=12,
            models=("dots",),
            parsers={"vllm": ("dots",), "sglang": ("dots",)},
        ),
        openers=("<dots_function_call>",),
    ),
    CallFormat(
        name="step3",
        title="Step 3 (steptml)",
        scan=_STEP3.scanner().scan,
        render=_render_step3,
        source="SGLang 0.5.23 step3_detector, vLLM 0.32.0 step3_tool_parser",
        openers=("<steptml:invoke", _STEP3_WRAP[0]),
        markers=(
            *_STEP3_WRAP,
            f"<{_BAR}tool_call_begin{_BAR}>",
            f"<{_BAR}tool_sep{_BAR}>",
            _STEP3_AFTER,
            "<steptml:invoke name=",
            "</steptml:invoke>",
            "<steptml:parameter name=",
            "</steptml:parameter>",
        ),
        typed=False,
        rank=13,
        models=("Step 3",),
        parsers={"vllm": ("step3",), "sglang": ("step3",)},
    ),
    _format(
        "claude_xml",
        "<function_calls> with <invoke> (imitated)",
        "",
        ("<function_calls>", "</function_calls>"),
        source="what models trained on other assistants' transcripts write; no template of a local model",
        rank=20,
    ),
    CallFormat(
        name="seed_oss",
        title="Seed-OSS",
        scan=_SEED.scanner().scan,
        render=_render_seed,
        source="chat template of ByteDance-Seed-OSS",
        openers=("<seed:tool_call>",),
        markers=("<seed:tool_call>", "</seed:tool_call>"),
        typed=False,
        rank=9,
        models=("Seed-OSS",),
        parsers={"vllm": ("seed_oss",)},
    ),
    CallFormat(
        name="minicpm5",
        title="MiniCPM 5",
        scan=_MINICPM.scanner().scan,
        render=_render_minicpm,
        source="chat template of MiniCPM5-1B",
        openers=("<function name=",),
        markers=("<function name=", "</function>", "<param name=", "</param>"),
        typed=False,
        rank=15,
        models=("MiniCPM 5",),
        parsers={"vllm": ("minicpm5",), "sglang": ("minicpm5",), "mlx_server": ("minicpm5",)},
    ),
)
