"""Evidence: places in decoded bodies led back to bytes on the wire."""

from __future__ import annotations

import msgspec

from proxy.classify.view import ExchangeView
from results.outcomes import MAX_QUOTE, Evidence
from stacks.dialects import Assembled
from stacks.irregular import Irregularity
from stacks.locate import ranges, request_range, text_extent
from stacks.turn import Fragment, ToolCall


class Citing:
    """Makes evidence for one exchange. Offsets are into decoded bodies; the ranges given out are wire offsets."""

    view: ExchangeView
    assembled: Assembled

    def cite(self, start: int, end: int, why: str = "") -> Evidence:
        """Evidence at decoded response body offsets."""
        body = self.view.wire.response_body
        first, last = self.view.response_map.wire(start, end)
        quote = body[start : min(end, start + 4 * MAX_QUOTE)].decode("utf-8", "replace")[:MAX_QUOTE]
        return Evidence(attempt=self.view.attempt, direction="response", start=first, end=last, quote=quote, why=why)

    def cite_request(self, path: tuple[str | int, ...], why: str = "") -> Evidence:
        """Evidence at a value of the request body (the whole body where it cannot be found)."""
        body = self.view.wire.request_body
        found = request_range(body, path) if path else None
        start, end = found if found is not None else (0, len(body))
        first, last = self.view.request_map.wire(start, end)
        quote = body[start : min(end, start + 4 * MAX_QUOTE)].decode("utf-8", "replace")[:MAX_QUOTE]
        return Evidence(attempt=self.view.attempt, direction="request", start=first, end=last, quote=quote, why=why)

    def cite_head(self, why: str = "") -> Evidence:
        """Evidence at the response's head (an empty range where there is none)."""
        start, end = self.view.response_head
        quote = f"status {self.view.wire.status}" if self.view.wire.status else "no response"
        return Evidence(attempt=self.view.attempt, direction="response", start=start, end=end, quote=quote, why=why)

    def cite_body(self, why: str = "") -> Evidence:
        """Evidence at the whole response body, or at the head where it has none."""
        body = self.view.wire.response_body
        return self.cite(0, len(body), why) if body else self.cite_head(why)

    def cite_error(self, why: str = "") -> Evidence:
        """Evidence at the innermost error message."""
        error = self.assembled.errors[0] if self.assembled.errors else None
        if error is None:
            return self.cite_body(why)
        inner = error.inner_end > error.inner_start
        start, end = (error.inner_start, error.inner_end) if inner else (error.start, error.end)
        cited = self.cite(start, end, why)
        if cited.quote[:1] in "{[":
            return cited
        return msgspec.structs.replace(cited, quote=(error.innermost or error.message)[:MAX_QUOTE])

    def cite_fragments(self, fragments: tuple[Fragment, ...], why: str = "") -> Evidence:
        """Evidence from the first to the last fragment of a value that came in pieces."""
        ends = fragments if len(fragments) < 3 else (fragments[0], fragments[-1])
        found = ranges(self.assembled, ends) if ends else []
        if not found:
            return self.cite_body(why)
        return self.cite(min(start for start, _ in found), max(end for _, end in found), why)

    def cite_events(self, fragments: tuple[Fragment, ...], why: str = "") -> Evidence:
        """Evidence at the events (the whole body of a plain answer) that a value came in: cheaper than the value's own
        place, and enough where nothing is in dispute."""
        if not fragments:
            return self.cite_body(why)
        first, last = self.assembled.events[fragments[0][0]], self.assembled.events[fragments[-1][0]]
        return self.cite(min(first.start, last.start), max(first.end, last.end), why)

    def cite_text(self, first: int, last: int, why: str = "", *, reasoning: bool = False) -> Evidence:
        """Evidence at characters first..last of the answer's text (or of its reasoning)."""
        turn = self.assembled.turn
        if turn is None:
            return self.cite_body(why)
        fragments = turn.where_reasoning if reasoning else (*turn.where_content, *turn.where_refusal)
        found = text_extent(self.assembled, fragments, first, last)
        if found is None:
            return self.cite_fragments(fragments, why)
        cited = self.cite(*found, why)
        text = (turn.reasoning or "") if reasoning else (turn.content or "") + (turn.refusal or "")
        return msgspec.structs.replace(cited, quote=text[first:last][:MAX_QUOTE])

    def cite_call(self, call: ToolCall, why: str = "") -> Evidence:
        """Evidence at a delivered call."""
        return self.cite_fragments(call.where or call.where_arguments or call.where_name, why)

    def cite_irregular(self, item: Irregularity) -> Evidence:
        """Evidence at an irregularity."""
        if item.end > item.start:
            return self.cite(item.start, item.end, item.message)
        return self.cite_body(item.message)

    def cite_usage(self, why: str = "") -> Evidence:
        """Evidence at the token counts."""
        turn = self.assembled.turn
        usage = turn.usage if turn is not None else None
        return self.cite_fragments(usage.where if usage is not None else (), why)
