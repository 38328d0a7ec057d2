"""What a verdict means to somebody whose agent does not work: one sentence for each layer or code. Pure."""

from __future__ import annotations

from results.outcomes import Outcome
from stacks.serving.base import ServingStack

HEALTHY = "Healthy: a tool call arrives plain and streamed, and its result goes back."

_BY_CODE = {
    "transport.connect": "Nothing answers there: no server listens at this address.",
    "transport.auth": "The server wants a key that it did not get. The model never ran.",
    "transport.loading": "The server is still loading the model. Nothing is wrong yet.",
    "transport.wrong_route": "The server has no such route. The model never ran.",
    "transport.stream_truncated": "The stream breaks off before its end.",
    "transport.timeout_read": "The server took the request and did not answer in time.",
    "transport.gateway": "Something between client and server answered in its place, or changed what it said.",
    "transport.buffered": "Something between client and server holds the stream back and lets it go all at once.",
    "gate.model_not_found": "The server has no model of this name. No model ran.",
    "template.tools_absent": "The tools were accepted, but the model never saw them: they are not in the prompt.",
    "parser.left_as_text": "The model wrote a correct call, and the server passed it on as plain text.",
    "parser.dropped": "The model wrote a correct call, and the server threw it away.",
    "parser.stream_differs": "The same answer arrives whole when plain, and damaged when streamed.",
    "parser.server_error": "The model wrote a usable answer, and the server failed on it.",
    "nonresponse.reasoning_only": "The model thought and gave no answer.",
    "nonresponse.empty": "The answer is empty.",
    "model.no_call": "The tools were in the prompt, and the model wrote no call. This one is the model's own doing.",
}
_BY_LAYER = {
    "transport": "The request or its answer was lost on the way.",
    "gate": "The server refused the request before inference. The model never ran: its rate is undefined, not 0 %.",
    "request": "The server refused the request as it was written. The model never ran on it.",
    "template": "The chat template stood in the way.",
    "engine": "The engine failed.",
    "nonresponse": "Nothing usable came back.",
    "truncation": "The answer was cut off by a limit.",
    "parser": "What the model wrote was lost or changed between the engine and the client.",
    "protocol": "The answer breaks the protocol in a way that makes the call unusable.",
    "model": "The stack delivered what the model wrote, and the model's call is wrong.",
}


def headline(outcome: Outcome) -> str:
    """The verdict in one or two sentences."""
    return _BY_CODE.get(outcome.name) or _BY_LAYER.get(outcome.layer, outcome.detail)


_GENERAL = {
    "transport.connect": "start the server, or correct host and port of the URL",
    "transport.auth": "send the server's key: --header 'Authorization: Bearer ...' (or --api-key-env NAME)",
    "transport.loading": "wait until the model is loaded, and ask again",
    "transport.wrong_route": "correct the base URL: most servers serve OpenAI's API under /v1",
    "transport.buffered": "switch the gateway's buffering off (nginx: proxy_buffering off)",
    "transport.gateway": "go to the server directly, or have the gateway pass requests and answers on unchanged",
    "model.no_call": "nothing in the stack: try a stronger prompt, tool_choice required, or another model",
    "truncation.output_budget": "raise the output limit (max_tokens) of the request",
    "truncation.cut_inside_call": "raise the output limit (max_tokens) of the request",
}
_WITH_KEY = "; this command sends one with --api-key-env NAME (a variable that holds it) or --header"


def remedy(outcome: Outcome, stack: ServingStack, facts: dict[str, str]) -> str:
    """What to change: in the stack's own words, else what the verdict says, else what holds everywhere."""
    # Dropped by a parser of another format: that parser is what to change, as where the call stays in the text.
    misfit = outcome.name == "parser.dropped" and outcome.at_fault == "config"
    said = (
        stack.remedy("parser.left_as_text" if misfit else outcome.name, facts)
        or outcome.remedy
        or _GENERAL.get(outcome.name, "")
    )
    return said + _WITH_KEY if outcome.name == "transport.auth" and "--api-key-env" not in said else said


_QUOTED = 160


def cited_lines(outcome: Outcome) -> list[str]:
    """Each citation: where it stands on the record, and what is said there."""
    lines = []
    for cited in outcome.evidence[:3]:
        quote = " ".join(cited.quote.split())
        shown = quote[:_QUOTED] + ("..." if len(quote) > _QUOTED else "")
        why = f" ({cited.why})" if cited.why else ""
        lines.append(f"attempt {cited.attempt}, {cited.direction} bytes {cited.start}-{cited.end}{why}: {shown}")
    return lines
