"""The closed list of irregularities a response can show on the wire, and the record of one.

An irregularity is a departure from the documented form of a dialect that a client could stumble over. It is an
observation, never a verdict: whether it made a call unusable is decided elsewhere. Legal variety (an id in the first
delta only, `content: null`, `{}` as arguments, a usage-only chunk, a repeated role) is never listed.
"""

from __future__ import annotations

import msgspec

BREAKING = "breaking"
DEVIATION = "deviation"
NOTE = "note"

IRREGULARITIES: dict[str, tuple[str, str]] = {
    # tool calls
    "index_missing": (BREAKING, "a streamed tool call entry carries no index"),
    "index_type": (DEVIATION, "a tool call index is not an integer"),
    "index_reused": (BREAKING, "two different calls share one index"),
    "index_gap": (DEVIATION, "the first entry of a call skips an index"),
    "id_missing": (DEVIATION, "a call never got an id"),
    "id_empty": (DEVIATION, "a call's id is the empty string"),
    "id_late": (DEVIATION, "a call's id came after its first entry"),
    "id_changed": (DEVIATION, "the id of a call changed while it streamed"),
    "id_duplicate": (BREAKING, "two calls carry the same id"),
    "id_repeated": (NOTE, "a call's id is repeated in later entries"),
    "id_type": (DEVIATION, "a call's id is not a string"),
    "name_missing": (BREAKING, "a call has no function name"),
    "name_type": (BREAKING, "a call's function name is not a string"),
    "name_repeated": (DEVIATION, "a call's function name is repeated in later entries"),
    "name_split": (DEVIATION, "a call's function name came in pieces"),
    "arguments_type": (BREAKING, "a call's arguments have another JSON type than the dialect says"),
    "arguments_empty": (DEVIATION, "a call's arguments are the empty string, which is not JSON"),
    "arguments_missing": (DEVIATION, "a call has no arguments at all"),
    "arguments_not_json": (BREAKING, "a call's arguments text is not valid JSON"),
    "arguments_not_object": (DEVIATION, "a call's arguments are valid JSON but no object"),
    "arguments_duplicate_key": (DEVIATION, "a call's arguments name one key twice"),
    "arguments_differ": (BREAKING, "the final arguments of a call differ from the streamed ones"),
    "call_type": (DEVIATION, "a call's type is not the dialect's"),
    "call_not_object": (BREAKING, "a tool call entry is not an object"),
    "calls_type": (BREAKING, "the list of tool calls is not a list"),
    "two_entries_in_delta": (DEVIATION, "one delta carries two entries for the same call"),
    # message
    "role_missing": (NOTE, "no role was ever sent"),
    "role_late": (NOTE, "the role came after payload"),
    "role_unexpected": (DEVIATION, "the role is not assistant"),
    "content_type": (DEVIATION, "the content has another JSON type than the dialect says"),
    "content_differs": (DEVIATION, "the final text differs from the streamed one"),
    "message_missing": (BREAKING, "a choice carries neither message nor delta"),
    "message_in_stream": (DEVIATION, "a streamed chunk carries a whole message where a delta belongs"),
    "delta_in_plain": (DEVIATION, "a plain body carries a delta where a message belongs"),
    # finish
    "finish_missing": (DEVIATION, "the answer ended without a finish reason"),
    "finish_repeated": (DEVIATION, "a finish reason was sent more than once"),
    "finish_changed": (DEVIATION, "two different finish reasons were sent"),
    "finish_unknown": (DEVIATION, "the finish reason is not one the dialect documents"),
    "finish_type": (DEVIATION, "the finish reason is not a string"),
    "finish_without_calls": (BREAKING, "the finish reason announces tool calls and there are none"),
    "finish_hides_calls": (DEVIATION, "there are tool calls and the finish reason does not say so"),
    "finish_without_payload": (NOTE, "the answer finished with no text, no reasoning and no call"),
    "payload_after_finish": (DEVIATION, "text or calls came after the finish reason"),
    "load_only": (DEVIATION, "the server only loaded or unloaded the model"),
    # stream frame
    "done_missing": (DEVIATION, "the stream ended without its end mark"),
    "done_repeated": (NOTE, "the end mark was sent more than once"),
    "data_after_done": (DEVIATION, "data follows the end mark"),
    "done_unexpected": (NOTE, "an OpenAI end mark in a dialect that has none"),
    "final_blank_line_missing": (NOTE, "the last event lacks its closing blank line, so a strict reader drops it"),
    "events_run_together": (DEVIATION, "several events stand in one, without a blank line between them"),
    "event_truncated": (BREAKING, "the last event is cut"),
    "event_not_json": (DEVIATION, "an event's data is not JSON"),
    "event_not_object": (DEVIATION, "an event's data is JSON but no object"),
    "event_unknown": (NOTE, "an event type the dialect does not document"),
    "event_out_of_order": (DEVIATION, "an event came before the one that must open it, or after its end"),
    "event_name_differs": (NOTE, "the SSE event name and the type inside its data differ"),
    "event_missing": (DEVIATION, "an event the dialect requires never came"),
    "line_ignored": (DEVIATION, "a line of the event stream has no known field name"),
    "stream_empty": (BREAKING, "a stream was opened and nothing was sent in it"),
    "choices_missing": (DEVIATION, "a chunk has no choices"),
    "choices_empty": (DEVIATION, "a chunk has an empty list of choices and no usage"),
    "choices_type": (BREAKING, "choices is not a list of objects"),
    "choice_count": (DEVIATION, "another number of choices than asked for"),
    "block_missing": (DEVIATION, "a delta for a content block or output item that was never opened"),
    "block_open": (DEVIATION, "a content block or output item was never closed"),
    "block_unknown": (NOTE, "a content block or output item of an unknown type"),
    "output_differs": (DEVIATION, "the final output differs from the streamed one"),
    # identity and counts
    "response_id_changed": (DEVIATION, "the response id changed within one stream"),
    "model_changed": (DEVIATION, "the model name changed within one stream"),
    "object_mismatch": (NOTE, "the object type is not the one of this kind of body"),
    "usage_absent": (DEVIATION, "usage is required here and absent"),
    "usage_type": (DEVIATION, "usage is no object, or a count in it is no integer"),
    "usage_inconsistent": (DEVIATION, "the total is not the sum of its parts"),
    "usage_contradicts": (DEVIATION, "zero output tokens are counted although there is output"),
    # errors
    "error_in_stream": (BREAKING, "an error event inside a stream with a success status"),
    "error_under_success": (BREAKING, "an error object under a success status"),
    "answer_under_error": (DEVIATION, "a complete answer under an error status"),
    # body
    "plain_for_stream_request": (DEVIATION, "a plain body answers a request for a stream"),
    "frame_differs": (
        DEVIATION,
        "the stream is framed in another way than the dialect's: lines for events or events for lines",
    ),
    "stream_for_plain_request": (DEVIATION, "a stream answers a request for a plain body"),
    "content_type_lies": (DEVIATION, "the body is not what the content-type header says"),
    "mixed_dialects": (BREAKING, "the body speaks another dialect than the route, or several"),
    "body_empty": (DEVIATION, "a success status with an empty body"),
    "body_not_json": (BREAKING, "the body is not JSON"),
    "body_truncated": (BREAKING, "the body is cut"),
    "body_not_text": (BREAKING, "the body is not valid UTF-8"),
    "shape_unknown": (BREAKING, "the body is JSON of no known shape"),
    "trailing_data": (DEVIATION, "bytes follow the JSON body"),
    "json_duplicate_key": (DEVIATION, "an object names one key twice"),
    "json_nonstandard": (DEVIATION, "JSON with NaN, Infinity, a lone surrogate, a bare control character or the like"),
    "json_too_deep": (DEVIATION, "JSON nested deeper than is read"),
}
"""Every code, with how much it matters (`breaking`: a call or answer can become unusable; `deviation`: a strict
client stumbles; `note`: visible, usually harmless) and what it means."""


class Irregularity(msgspec.Struct):
    """One irregularity: its code, a sentence with the values seen, and the first byte range of the body it rests on.

    `start` and `end` are offsets into the decoded response body (end exclusive); both are the body's length when the
    irregularity is an absence. `count` says how often the same thing was seen with the same subject.
    """

    code: str
    message: str
    start: int
    end: int
    event: int = -1
    subject: str = ""
    count: int = 1

    @property
    def severity(self) -> str:
        """`breaking`, `deviation` or `note`."""
        return IRREGULARITIES[self.code][0]


MAX_IRREGULARITIES = 2000
"""So many are listed apart; beyond that, others of a code already listed only raise its first count."""


class IrregularityLog:
    """Collects irregularities; the same code about the same subject is counted, not listed again."""

    __slots__ = ("_seen", "items")

    def __init__(self) -> None:
        self.items: list[Irregularity] = []
        self._seen: dict[tuple[str, str], Irregularity] = {}

    def add(  # noqa: PLR0917
        self, code: str, message: str, start: int, end: int, event: int = -1, subject: str = ""
    ) -> None:
        """Record one; raises KeyError for a code outside the closed list."""
        if code not in IRREGULARITIES:
            raise KeyError(code)
        known = self._seen.get((code, subject))
        if known is None and len(self.items) >= MAX_IRREGULARITIES:
            known = next((item for item in self.items if item.code == code), None)
        if known is not None:
            known.count += 1
            return
        item = Irregularity(code, message, start, end, event, subject)
        self._seen[(code, subject)] = item
        self.items.append(item)

    def has(self, code: str) -> bool:
        """Whether that code was recorded for any subject."""
        return any(item.code == code for item in self.items)
