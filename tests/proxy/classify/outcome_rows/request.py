"""Exchanges that end as `request.*`, and what is said of each."""

from __future__ import annotations

from tests.proxy.classify.exchanges import chat
from tests.proxy.classify.outcome_rows.row import Row

ROWS = [
    Row(
        "forbidden page",
        chat("<html>Oops</html>", status=403, headers={"content-type": "text/html"}),
        "request.invalid_param undetermined",
        "ran no, low, refused, wrote unknown",
        ["response: Oops (the error)", "response: status 403 (the status)"],
        "",
        "server_log",
        [],
    ),
    Row(
        "context exceeded",
        chat({"error": {"message": "prompt is too long: 9000 tokens"}}, status=400),
        "request.context_exceeded config",
        "ran no, medium, refused, wrote unknown",
        ["response: prompt is too long: 9000 tokens (the error)", "response: status 400 (the status)"],
        "raise the server's context length, or send l",
        "",
        [],
    ),
    Row(
        "too large",
        chat({"error": {"message": "flux"}}, status=413),
        "request.context_exceeded config",
        "ran no, medium, refused, wrote unknown",
        ["response: flux (the error)", "response: status 413 (the status)"],
        "send a smaller request",
        "",
        [],
    ),
    Row(
        "bad parameter",
        chat({"error": {"message": "temperature must be non-negative"}}, status=400),
        "request.invalid_param client",
        "ran no, medium, refused, wrote unknown",
        ["response: temperature must be non-negative (the error)", "response: status 400 (the status)"],
        "correct the field that the message names",
        "",
        [],
    ),
    Row(
        "bad schema",
        chat({"error": {"message": "Failed to parse tools: Missing tool type"}}, status=500),
        "request.invalid_schema client",
        "ran no, medium, refused, wrote unknown",
        ["response: Failed to parse tools: Missing tool  (the error)", "response: status 500 (the status)"],
        "send a tool or response schema that this ser",
        "",
        [],
    ),
    Row(
        "odd 400",
        chat({"error": {"message": "flux capacitor"}}, status=400),
        "request.invalid_param undetermined",
        "ran no, low, refused, wrote unknown",
        ["response: flux capacitor (the error)", "response: status 400 (the status)"],
        "",
        "server_log",
        [],
    ),
]
