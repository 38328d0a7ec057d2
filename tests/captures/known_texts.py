# ruff: noqa: E501
"""What each text of the capture canaries is, labelled by hand. Nothing here is computed, and nothing of the project's
call formats is used.

Each text is given as (kind, calls, prose): kind is valid_call, malformed_call, unknown_tool, invalid_arguments, prose,
nothing, thoughts (reasoning alone) or open_thought_call (a good call inside reasoning that is never closed); calls are
the (name, arguments) that a perfect reader gets; prose is the text beside them.
"""

from __future__ import annotations

W = "get_weather"
Call = tuple[str, dict[str, object]]


def w(city: str) -> Call:
    """One call of the weather tool."""
    return (W, {"city": city})


VALID: dict[str, tuple[list[Call], str]] = {
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>': ([w("Paris")], ""),
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n<tool_call>\n'
    '{"name": "get_weather", "arguments": {"city": "London"}}\n</tool_call> ': ([w("Paris"), w("London")], ""),
    'I will check the weather now.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>': (
        [w("Paris")],
        "I will check the weather now.",
    ),
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\nI have called the weather tool.': (
        [w("Paris")],
        "I have called the weather tool.",
    ),
    "<think>\nThe user wants the weather.\n</think>\n\n<tool_call>\n"
    '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>': ([w("Paris")], ""),
    '{"name": "get_weather", "arguments": {"city": "Paris"}}': ([w("Paris")], ""),
    '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```': ([w("Paris")], ""),
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>": (
        [w("Paris")],
        "",
    ),
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"
    "<function=get_weather>\n<parameter=city>\nLondon\n</parameter>\n</function>\n</tool_call>": (
        [w("Paris"), w("London")],
        "",
    ),
    "<tool_call>\n<function=get_weather>\n<parameter=city>Rome & <b>\n</parameter>\n</function>\n</tool_call>": (
        [w("Rome & <b>")],
        "",
    ),
    "I will check it.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nLyon\n</parameter>\n</function>\n"
    "</tool_call>": ([w("Lyon")], "I will check it."),
    "<think>\nThey ask for weather.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>"
    "\n</function>\n</tool_call>": ([w("Bern")], ""),
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>": ([w("Paris")], ""),
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Nice</arg_value></tool_call>": ([w("Nice")], ""),
    '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>': ([w("Paris")], ""),
    "<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>": ([w("Paris")], ""),
    '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}': ([w("Paris")], ""),
    '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}]': ([w("Paris")], ""),
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>': ([w("Paris")], ""),
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
    '{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>': ([w("Paris")], ""),
    '<function_calls>\nget_weather(city="Paris")\n</function_calls>': ([w("Paris")], ""),
    '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>': ([w("Paris")], ""),
    '<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|tool_call_end|>': ([w("Paris")], ""),
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}': ([w("Paris")], ""),
    "<|channel|>analysis<|message|>Need the weather.<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.get_weather<|message|>{"city": "Paris"}': ([w("Paris")], ""),
    '{"name": "get_weather", "parameters": {"city": "Paris"}}': ([w("Paris")], ""),
    '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}': ([w("Paris")], ""),
    '[get_weather(city="Paris")]': ([w("Paris")], ""),
    '>>>get_weather\n{"city": "Paris"}': ([w("Paris")], ""),
    'Action: ```json\n[{"tool_name": "get_weather", "parameters": {"city": "Paris"}}]\n```': ([w("Paris")], ""),
    '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]': ([w("Paris")], ""),
    '<|tool_call|>[{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]'
    "<|/tool_call|>": ([w("Paris")], ""),
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
    '{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>': ([w("Paris")], ""),
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n'
    "</minimax:tool_call>": ([w("Paris")], ""),
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">'
    "Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>": ([w("Paris")], ""),
    'Thought: I need the weather.\nAction: get_weather\nAction Input: {"city": "Paris"}': (
        [w("Paris")],
        "Thought: I need the weather.",
    ),
}

MALFORMED: dict[str, list[Call]] = {
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris",}}\n</tool_call>': [w("Paris")],
    '<tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>': [w("Rome")],
    '<tool_call>\n```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```\n</tool_call>': [w("Paris")],
    "<tool_call>\nnull\n</tool_call>": [],
    '<tool_call>\n"get_weather"\n</tool_call>': [],
    '<tool_call>\n["get_weather", "Paris"]\n</tool_call>': [],
    '<tool_call>\n[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_weather", "arguments": '
    '{"city": "London"}}]\n</tool_call>': [w("Paris"), w("London")],
    '<tool_call>\n{"name": "get_weather"}\n</tool_call>': [],
    '<tool_call>\n{"arguments": {"city": "Paris"}}\n</tool_call>': [],
    '<tool_call>\n{"name": "get_weather", "parameters": {"city": "Paris"} }\n</tool_call>': [w("Paris")],
    '<tool_call>\n{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}\n</tool_call>': [w("Paris")],
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "metric": True}}\n</tool_call>': [
        (W, {"city": "Paris", "metric": True})
    ],
    "<tool_call>\n{'name': 'get_weather', 'arguments': {'city': 'Paris'}}\n</tool_call>": [w("Paris")],
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par': [w("Par")],
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par\n</tool_call>': [w("Par")],
    "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>": [w("Oslo")],
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nPar": [w("Par")],
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</function>\n</tool_call>": [w("Rome")],
    '<|tool_call>call:get_weather{city:"Paris"}<tool_call|>': [w("Paris")],
    '<|tool_call>call:get_weather{city:<|"|>Par': [w("Par")],
    '[TOOL_CALLS]get_weather[ARGS]{"city": "Pa': [w("Pa")],
    "<function_calls>\nget_weather(city=Paris\n</function_calls>": [w("Paris")],
    '<|channel|>commentary to=functions.get_weather<|message|>{"city": "Par': [w("Par")],
    'assistantcommentary to=functions.get_weather json{"city": "Paris"}': [w("Paris")],
}

INVALID: dict[str, list[Call]] = {
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": 5, "extra": true}}\n</tool_call>': [
        (W, {"city": 5, "extra": True})
    ],
    "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>": [(W, {})],
}

UNKNOWN: dict[str, list[Call]] = {
    '<tool_call>\n{"name": "launch_rocket", "arguments": {"target": "moon"}}\n</tool_call>': [
        ("launch_rocket", {"target": "moon"})
    ],
}

OPEN_THOUGHT: dict[str, list[Call]] = {
    "<think>\nI will call it now. <tool_call>\n<function=get_weather>\n<parameter=city>\nWien\n</parameter>\n</function>\n"
    "</tool_call>": [w("Wien")],
}

PROSE: dict[str, str] = {
    "The weather in Paris is 18 degrees and sunny.": "The weather in Paris is 18 degrees and sunny.",
    "It is 18 degrees and sunny in Paris.": "It is 18 degrees and sunny in Paris.",
    "It is 21 °C in Zürich ☀️😀.": "It is 21 °C in Zürich ☀️😀.",
    "Temp: 21Â": "Temp: 21",
    "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is sunny.": "It is sunny.",
    "<think>\nEasy one.\n</think>\n\nIt is sunny.": "It is sunny.",
}

ENDLESS: dict[str, str] = {
    "la la la lo lo lo @-2": "prose",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "ha ha ho ho @-2': "call",
}

THOUGHTS = (
    "<think>\nHmm, let me think about that for a while.\n</think>",
    "<think>\nHmm, I never stop thinking about",
)
