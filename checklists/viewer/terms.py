"""Every word of ours that the page shows, with its meaning: for the hover texts."""

from __future__ import annotations

from checklists.viewer.filters import FIELDS
from checklists.viewer.gist import SEARCHED
from results.taxonomy import CODES

LAYERS = {
    "transport": "The connection: nothing, or only part of an answer, came through.",
    "gate": "The server refused the request before any work: the feature is not there or not switched on.",
    "request": "The server refused the request because of what it says.",
    "template": "The chat template, which turns messages into the model's prompt, failed or left something out.",
    "engine": "The engine that runs the model failed, or forced what the model wrote.",
    "nonresponse": "An answer came with nothing in it.",
    "truncation": "The answer, or the prompt, was cut.",
    "parser": "The model wrote a call and the server's parser lost, changed or left it in the text.",
    "protocol": "The answer breaks the rules of its protocol.",
    "model": "The stack did its work; what the model wrote is wrong.",
    "task": "Calls came and were valid, and the task was not done.",
    "ok": "Nothing stopped it.",
    "checker": "A check of the task pack is itself broken.",
    "not_run": "The episode never began.",
}
FAULTS = {
    "config": "A setting: a flag, a template, a parser that is missing or wrong.",
    "stack": "The serving software itself.",
    "client": "The program that asked.",
    "model": "The model: it ran, was served properly, and wrote this.",
    "network": "The connection, a proxy or a gateway on the way.",
    "undetermined": "The record does not tell; the verdict says what would decide it.",
    "none": "Nobody: it went well.",
}
RAN = {
    "yes": "The model ran: it wrote something.",
    "no": "The model never ran. A rate of such exchanges is undefined, not 0 %.",
    "unknown": "The record does not tell whether the model ran.",
}
ENDS = {
    "complete": "The answer came to its end.",
    "client_gone": "The client left before the end.",
    "upstream_reset": "The server broke the connection off.",
    "upstream_closed": "The server closed the connection before the answer's end.",
    "upstream_refused": "Nothing listens at the server's address.",
    "upstream_unreachable": "The server's address cannot be reached.",
    "name_not_resolved": "The server's name is not known.",
    "tls_failed": "The encrypted connection could not be made.",
    "timeout_connect": "Connecting took longer than allowed.",
    "timeout_read": "The server sent nothing for longer than allowed.",
    "not_http": "What came is not HTTP.",
    "refused_by_relay": "The recording relay itself refused the request.",
    "opaque": "The connection became something else than HTTP and was passed through.",
    "relay_stopped": "The recording was ended.",
    "recorder_killed": "The recording stops in the middle of this exchange.",
    "open": "Still going on.",
}
DELIVERY = {
    "intact": "What the model wrote arrived as it was.",
    "left_as_text": "A call arrived as plain text.",
    "dropped": "Something the model wrote did not arrive.",
    "altered": "It arrived changed.",
    "repaired": "The server mended what the model wrote.",
    "in_reasoning": "It arrived in the reasoning field.",
    "refused": "The server refused to pass it on.",
    "cut": "It was cut.",
    "phantom": "Something arrived that the model did not write.",
    "constrained": "The server forced the form of what the model wrote.",
    "unknown": "The record does not tell.",
}
GRADE = {
    "observed": "Read off the recorded exchange alone.",
    "differential": "Found by comparing two channels of the same server.",
    "known-answer": "Found with a model whose output is fixed by construction.",
}


def all_terms() -> dict[str, object]:
    """For the page, by kind."""
    return {
        "outcome": {name: info.meaning for name, info in CODES.items()},
        "layer": LAYERS,
        "fault": FAULTS,
        "ran": RAN,
        "end": ENDS,
        "delivery": DELIVERY,
        "grade": GRADE,
        "filters": FIELDS,
        "searched": SEARCHED,
    }
