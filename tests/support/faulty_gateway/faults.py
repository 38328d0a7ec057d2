"""The faults by name."""

from __future__ import annotations

from tests.support.faulty_gateway import answers, legal, refusals, requests, rewritten
from tests.support.faulty_gateway.fault import Fault, Nothing

FAULTS: dict[str, type[Fault]] = {
    "none": Nothing,
    "keep_alive_comments": legal.KeepAliveComments,
    "odd_splits": legal.OddSplits,
    "crlf_lines": legal.CrlfLines,
    "new_ids": legal.NewIds,
    "renames_model": legal.RenamesModel,
    "drops_calls": answers.DropsCalls,
    "loses_argument_delta": answers.LosesArgumentDelta,
    "loses_text_delta": answers.LosesTextDelta,
    "doubles_argument_delta": answers.DoublesArgumentDelta,
    "doubles_text_delta": answers.DoublesTextDelta,
    "reorders_events": answers.ReordersEvents,
    "repeats_id": answers.RepeatsId,
    "changes_id": answers.ChangesId,
    "drops_id": answers.DropsId,
    "drops_index": answers.DropsIndex,
    "finish_stop": answers.FinishStop,
    "finish_length": answers.FinishLength,
    "closes_in_arguments": answers.ClosesInArguments,
    "closes_before_done": answers.ClosesBeforeDone,
    "buffers": answers.Buffers,
    "drops_usage": answers.DropsUsage,
    "renames_tool": answers.RenamesTool,
    "arguments_as_object": rewritten.ArgumentsAsObject,
    "calls_as_text": rewritten.CallsAsText,
    "gzip_claimed": answers.GzipClaimed,
    "drops_old_messages": requests.DropsOldMessages,
    "drops_system": requests.DropsSystem,
    "drops_tools": requests.DropsTools,
    "truncates_content": requests.TruncatesContent,
    "lowers_max_tokens": requests.LowersMaxTokens,
    "stream_as_plain": requests.StreamAsPlain,
    "limits_rate_once": refusals.LimitsRateOnce,
    "times_out": refusals.TimesOut,
    "times_out_once": refusals.TimesOutOnce,
    "small_bodies": refusals.SmallBodies,
}
