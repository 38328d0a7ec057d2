"""What happened to so many requests, one sentence for each outcome. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from checklists.facts.records import AskedServer
from checklists.facts.stations import meaning_of

MAX_NAMED = 4

_BY_LAYER = {
    "transport": "{What} got no proper answer from the server",
    "gate": "The server refused {what} before the model ran",
    "request": "The server rejected {what} as written, before the model ran",
    "template": "The chat template stood in the way of {what}",
    "engine": "The server's engine failed on {what}",
    "nonresponse": "{What} came back with nothing usable in the answer",
    "truncation": "The answers to {what} were cut off by a limit",
    "parser": "The model answered, and the server lost or damaged what it wrote, in {what}",
    "protocol": "The server's answers to {what} break the rules of the API",
    "model": "The model itself answered wrongly in {what}",
    "task": "The model itself did the task wrongly in {what}",
}
_BY_CODE = {
    "transport.connect": "{What} found no server: no connection could be opened",
    "transport.auth": "{What} came without the key that the server wants; the model never ran",
    "transport.wrong_route": "{What} went to an address that the server does not serve; the model never ran",
    "transport.loading": "The server was still loading the model when {what} came",
    "transport.stream_truncated": "The connection broke off in the middle of the answer to {what}",
    "transport.client_gone": "The program left before the answer to {what} was complete",
    "transport.timeout_read": "The server took {what} and did not answer in time",
    "gate.tools_unsupported": "The server refused {what} before the model ran: it does not accept tools for this model",
    "gate.model_not_found": "{What} asked for a model that the server does not have; no model ran",
    "gate.parser_not_configured": "The server refused {what} before the model ran: it was started without a tool-call "
    "parser",
    "gate.template_flag_missing": "The server refused {what} before the model ran: it was started without its template "
    "engine",
    "request.context_exceeded": "The server refused {what} before the model ran: the prompt does not fit its context",
    "template.tools_absent": "The model never saw the tools of {what}: the server took them and left them out of the "
    "prompt",
    "nonresponse.empty": "{What} came back empty, with a success status",
    "nonresponse.reasoning_only": "In {what} the model thought and gave no answer",
    "truncation.output_budget": "The answers to {what} were cut off by the token limit",
    "truncation.cut_inside_call": "The answers to {what} were cut off by a limit in the middle of a tool call",
    "parser.left_as_text": "In {what} the model wrote a correct tool call, and the server passed it on as plain text",
    "parser.dropped": "In {what} the model wrote a correct tool call, and the server threw it away",
    "parser.server_error": "In {what} the server failed on what the model had written",
    "parser.altered": "In {what} the server delivered another tool call than the model wrote",
    "parser.in_reasoning": "In {what} the tool call came back hidden in the reasoning field",
    "model.no_call": "In {what} the model wrote no tool call although one was due",
    "model.malformed_call": "In {what} the model wrote a tool call that cannot be read",
    "model.unknown_tool": "In {what} the model called a tool that was not offered",
    "model.invalid_arguments": "In {what} the model's arguments do not fit the tool's schema",
}
"""Sentences that say it whole; where there is none, the layer's sentence and the outcome's meaning do."""
_OPEN = "{What} brought no usable call back, and the record does not show whether the model wrote one"


def of_what(count: int, total: int, where: str = "") -> str:
    """`every request (12 of 12)`, `3 of 12 requests to server b`, `5 of the 6 requests to servers a, b`, `the only
    request`."""
    to = f" to {where}" if where else ""
    if where.startswith("servers "):
        return f"{count} of the {total} requests{to}"
    if total == 1:
        return f"the only request{to}"
    return f"every request{to} ({count} of {total})" if count == total else f"{count} of {total} requests{to}"


def which(counts: Counter[str], asked: int, by_server: Sequence[AskedServer]) -> tuple[int, int, str]:
    """How many of how many requests, and to which server where several were asked: the requests to these servers
    are what counts."""
    total = counts.total()
    if len(by_server) < 2:
        return total, asked, ""
    of_these = sum(one.asked for one in by_server if one.name in counts)
    asked = of_these if of_these >= total else asked
    if len(counts) == 1:
        return total, asked, f"server `{next(iter(counts))}`"
    names = sorted(counts, key=lambda name: (-counts[name], name))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return total, asked, "servers " + ", ".join(f"`{name}`" for name in names[:MAX_NAMED]) + more


def clause(outcome: str, at_fault: str, count: int, total: int, where: str = "") -> str:
    """What happened to so many requests, as a sentence without its full stop."""
    layer = outcome.partition(".")[0]
    whole = _OPEN if layer == "model" and at_fault == "undetermined" else _BY_CODE.get(outcome, "")
    what = of_what(count, total, where)
    said = (whole or _BY_LAYER.get(layer, "{What} went wrong")).format(what=what, What=what[0].upper() + what[1:])
    return said if whole or not meaning_of(outcome) else f"{said}: {meaning_of(outcome)}"
