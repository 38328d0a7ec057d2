"""Exchanges that end as `gate.*`, and what is said of each."""

from __future__ import annotations

from tests.proxy.classify.exchanges import chat
from tests.proxy.classify.outcome_rows.row import Row

ROWS = [
    # gate, request, template, engine: by words and status
    Row(
        "tools unsupported",
        chat({"error": {"message": "m does not support tools"}}, status=400),
        "gate.tools_unsupported config",
        "ran no, high, refused, wrote unknown",
        ["response: m does not support tools (the error)", "response: status 400 (the status)"],
        "Pick a model whose `/api/show` `capabilities",
        "",
        [],
    ),
    Row(
        "tools unsupported, none sent",
        chat({"error": {"message": "m does not support tools"}}, status=400, tools=None),
        "gate.capability_unsupported config",
        "ran no, high, refused, wrote unknown",
        ["response: m does not support tools (the error)", "response: status 400 (the status)"],
        "Pick a model whose `/api/show` `capabilities",
        "",
        [],
    ),
    Row(
        "parser not configured",
        chat({"error": {"message": '"auto" tool choice requires --tool-call-parser'}}, status=400),
        "gate.parser_not_configured config",
        "ran no, medium, refused, wrote unknown",
        ['response: "auto" tool choice requires --tool-c (the error)', "response: status 400 (the status)"],
        "start the server with its tool-call parser (",
        "",
        [],
    ),
    Row(
        "jinja flag",
        chat({"error": {"message": "tools param requires --jinja flag"}}, status=500),
        "gate.template_flag_missing config",
        "ran no, high, refused, wrote unknown",
        ["response: tools param requires --jinja flag (the error)", "response: status 500 (the status)"],
        "Start with --jinja",
        "",
        [],
    ),
    Row(
        "model not found",
        chat({"error": {"message": "model 'm' not found"}}, status=404),
        "gate.model_not_found client",
        "ran no, high, refused, wrote unknown",
        ["response: model 'm' not found (the error)", "response: status 404 (the status)"],
        "`ollama pull`, or fix the tag; /api/tags lis",
        "",
        [],
    ),
]
