"""The facts of a report: verdict, counts on the way, groups with their bytes, whatever state a run is in."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import msgspec
import pytest

from checklists.facts import gather
from checklists.facts.records import RunFacts
from checklists.reading import RunSource
from results.manifest import UpstreamFacts, known, new_manifest, write_manifest
from results.outcome_table import tabulate
from results.outcomes import encode
from results.reader import JournalMissingError
from tests.support.journalled import Raw
from tests.support.reported import CALL, EMPTY, REFUSED, SERVICE, TEXT, answer, refusal, request, response, run_of


def facts_of(folder: Path) -> RunFacts:
    return gather([folder]).runs[0]


def test_a_gate_is_said_in_words_and_its_rate_is_undefined(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [REFUSED] * 12))
    assert run.verdict.kind == "faults"
    assert run.verdict.headline.startswith("The server refused every request (12 of 12) before the model ran")
    assert run.rates.fidelity.value is None
    assert run.rates.fidelity.undefined == "rej"
    assert run.rates.naive.value == 0
    said = " ".join(run.verdict.sentences)
    assert "would print 0.0 % (0 of 12)" in said
    assert "did not run in any of the 12 requests: its success rate is undefined, not 0 %" in said
    assert "`--jinja`" in run.verdict.changes[0].change
    assert run.verdict.changes[0].count == 12
    assert run.at_fault == {"config": 12}


def test_every_exchange_is_somewhere_on_its_way(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [CALL, REFUSED, TEXT, EMPTY, SERVICE, Raw(request(), b"", "refused")]))
    assert (run.exchanges, run.asked, run.service, run.offered, run.good) == (6, 5, 1, 5, 1)
    assert run.path[0].entered == run.asked
    for before, after in zip(run.path, run.path[1:], strict=False):
        assert after.entered == before.entered - before.stopped
    stopped = {one.key: one.stopped for one in run.path if one.stopped}
    assert stopped == {"network": 1, "gate": 1, "engine": 1, "parser": 1}
    assert run.path[-1].entered - run.path[-1].stopped == run.good
    assert sum(run.at_fault.values()) + run.good == run.asked
    assert sum(run.model_ran.values()) == run.asked
    assert sum(group.count for group in run.groups) == run.asked - run.good
    assert sum(cell.exchanges for cell in run.cells) == run.asked


def test_a_group_shows_the_very_bytes(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [CALL, TEXT, TEXT]))
    (group,) = run.groups
    assert (group.outcome, group.count, group.attempts) == ("parser.left_as_text", 2, ("2", "3"))
    shown = group.exemplar.evidence[0]
    assert not shown.quoted
    wire = TEXT.response
    assert wire[shown.start : shown.end].decode() == shown.cited
    assert wire[: shown.start].decode().endswith(shown.before[-20:])
    assert "get_weather" in shown.cited


def test_a_long_citation_keeps_its_ends(tmp_path: Path) -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "Pärís " * 400 + '"}}\n</tool_call>'
    run = facts_of(run_of(tmp_path, [Raw(request(), answer(text))]))
    shown = run.groups[0].exemplar.evidence[0]
    whole = shown.end - shown.start
    assert shown.left_out > 0
    assert len(shown.cited.encode()) + len(shown.cited_end.encode()) + shown.left_out <= whole + 8
    assert "\\x" not in shown.cited + shown.cited_end


def test_compressed_bytes_are_shown_as_they_read(tmp_path: Path) -> None:
    body = gzip.compress(TEXT.response.partition(b"\r\n\r\n")[2], mtime=0)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    run = facts_of(run_of(tmp_path, [Raw(request(), head % len(body) + body)]))
    shown = run.groups[0].exemplar.evidence[0]
    assert shown.quoted
    assert "get_weather" in shown.cited


def launched(folder: Path, stack: str, *flags: str) -> RunFacts:
    """The facts of a run in which a server that was started so left calls in the text."""
    run_of(folder, [CALL, TEXT])
    facts = {"stack": known(stack, "test"), "launch_flags": known(["server", *flags], "test")}
    write_manifest(folder, new_manifest("run-1", upstreams=[UpstreamFacts("up", "http://127.0.0.1:9", facts)]))
    return facts_of(folder)


@pytest.mark.parametrize(
    ("stack", "flags", "said"),
    [
        ("llamacpp", ("--skip-chat-parsing",), "without `--skip-chat-parsing`"),
        ("mlx_server", ("--chat-template", "{{ tools }}"), "start mlx_lm.server without `--chat-template`"),
        ("vllm", ("--model", "m"), "--enable-auto-tool-choice --tool-call-parser hermes"),
        ("sglang", ("--model-path", "m"), "--tool-call-parser"),
    ],
)
def test_the_flag_that_is_at_fault_is_named(tmp_path: Path, stack: str, flags: tuple[str, ...], said: str) -> None:
    run = launched(tmp_path, stack, *flags)
    assert run.at_fault == {"config": 1}
    assert said in run.verdict.changes[0].change


def test_of_several_servers_the_one_at_fault_is_named(tmp_path: Path) -> None:
    folder = run_of(tmp_path, [TEXT, CALL, TEXT, CALL])
    journal = folder / "wire.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    of_right = [b'"attempt":2,' in line or b'"attempt":4,' in line for line in lines]
    told = [
        line.replace(b'"upstream":"up"', b'"upstream":"right"') if at else line
        for line, at in zip(lines, of_right, strict=True)
    ]
    journal.write_bytes(b"".join(told))
    run = facts_of(folder)
    assert [(one.name, one.asked, one.good) for one in run.by_server] == [("right", 2, 2), ("up", 2, 0)]
    assert run.verdict.headline.startswith(
        "In every request to server `up` (2 of 2) the model wrote a correct tool call"
    )
    assert "All went well on server `right` (2 of 2)." in run.verdict.sentences[0]
    assert "the model wrote valid calls in 100.0 % (4 of 4)" in " ".join(run.verdict.sentences)
    assert run.verdict.changes[0].where == "up"


def test_an_open_fault_gets_a_question_not_a_change(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [EMPTY] * 3))
    assert run.verdict.kind == "open"
    assert run.verdict.changes
    assert all(change.decides for change in run.verdict.changes)
    assert run.verdict.changes[0].change.startswith("run `stacktap diagnose http://127.0.0.1:9 --run run-1`, which")
    assert "open" in run.verdict.sentences[0]
    assert "not known whether the model ran in any of the 3 requests" in run.verdict.sentences[1]
    assert any(one.what.startswith("who is at fault for nonresponse.empty") for one in run.unknown)


def test_all_well(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [CALL, CALL]))
    assert run.verdict.kind == "clean"
    assert run.verdict.headline.startswith("All is well")
    assert run.groups == ()
    assert run.timings[0].prompt_tokens is not None
    assert run.timings[0].prompt_tokens.p50 == 50
    assert run.timings[0].duration is not None
    assert run.timings[0].duration.n == 2


def test_requests_without_tools_have_no_call_rate(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [Raw(request(tools=[]), answer("Hello."))]))
    assert run.offered == 0
    assert any("No request offered the model a tool" in one for one in run.verdict.sentences)


@pytest.mark.parametrize("exchanges", [[], [SERVICE]], ids=["empty", "service alone"])
def test_nothing_asked_says_what_to_do(tmp_path: Path, exchanges: list[Raw]) -> None:
    run = facts_of(run_of(tmp_path, exchanges))
    assert run.verdict.kind == "nothing"
    assert run.rates.naive.undefined == "none"
    assert "stacktap wrap" in run.verdict.changes[0].change


def test_a_damaged_journal_without_manifest_is_told(tmp_path: Path) -> None:
    run_of(tmp_path, [CALL, REFUSED], manifest=False)
    lines = (tmp_path / "wire.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "wire.jsonl").write_bytes(b"".join([*lines[:2], b"{not json}\n", *lines[2:]]) + b'{"event":"req')
    run = facts_of(tmp_path)
    assert run.asked == 2
    assert len(run.recordings[0].problems) == 2
    assert "run.json" in run.recordings[0].manifest_problem
    assert str(tmp_path) not in msgspec.json.encode(run).decode()
    assert any("manifest" in one.why for one in run.unknown)
    assert run.servers == ()


def test_no_journal_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(JournalMissingError):
        gather([tmp_path])


def test_a_better_founded_verdict_is_preferred(tmp_path: Path) -> None:
    run_of(tmp_path, [CALL, EMPTY, EMPTY])
    from proxy.exchange_view import classify_run
    from results.reader import RunReader

    judged = list(classify_run(RunReader(tmp_path)))
    better = msgspec.structs.replace(
        judged[2].outcome,
        layer="parser",
        code="dropped",
        at_fault="stack",
        model_ran="yes",
        decide_by=None,
        grade="known-answer",
        wrote="valid_call",
    )
    lines = [encode(one) for one in (*judged[:2], msgspec.structs.replace(judged[2], outcome=better))]
    (tmp_path / "outcomes.jsonl").write_bytes(b"\n".join([lines[0], b"rubbish", *lines[1:]]) + b"\n")
    run = facts_of(tmp_path)
    assert {group.outcome: (group.count, group.grade) for group in run.groups} == {
        "nonresponse.empty": (1, "observed"),
        "parser.dropped": (1, "known-answer"),
    }


def test_what_diagnose_found_comes_first(tmp_path: Path) -> None:
    run_of(tmp_path, [EMPTY])
    outcome = {"layer": "parser", "code": "dropped", "at_fault": "stack", "model_ran": "yes", "grade": "differential"}
    said = {"headline": "The server threw it away.", "remedy": "use --tool-call-parser hermes", "outcome": outcome}
    (tmp_path / "diagnosis.json").write_bytes(msgspec.json.encode({**said, "explained": ["seen twice", 7]}))
    run = facts_of(tmp_path)
    assert run.verdict.headline == "The server threw it away."
    assert run.verdict.changes[0].change == "use --tool-call-parser hermes"
    assert run.beside[0].explained == ("seen twice",)
    (tmp_path / "diagnosis.json").write_bytes(b"[1]")
    assert facts_of(tmp_path).beside == ()


def test_the_context_that_the_largest_prompt_needs(tmp_path: Path) -> None:
    def refused(tokens: int) -> Raw:
        words = f"request ({tokens} tokens) exceeds the available context size (4096 tokens), try increasing it"
        error = {"code": 400, "message": words, "type": "exceed_context_size_error", "n_prompt_tokens": tokens}
        return Raw(request(), response({"error": error}, "400 Bad Request"))

    run = facts_of(run_of(tmp_path, [refused(5000), refused(29000), refused(6000)]))
    assert [(group.outcome, group.count) for group in run.groups] == [("request.context_exceeded", 3)]
    assert "`-c 32768`" in run.verdict.changes[0].change


def test_many_kinds_are_counted_in_bounded_number(tmp_path: Path) -> None:
    many = [
        Raw(request(), response({"error": {"message": f"boom {chr(97 + n % 26) * 3}"}}, "500 X")) for n in range(60)
    ]
    run = facts_of(run_of(tmp_path, many))
    assert sum(group.count for group in run.groups) + 0 <= 60
    assert len(run.groups) <= 24
    assert sum(run.at_fault.values()) == 60


def test_what_stacktap_asks_about_a_server_is_no_request_to_a_model(tmp_path: Path) -> None:
    missing = response({"error": "not found"}, "404 Not Found")
    looked = Raw(request("/tokenize"), missing, tags=(("ask", "1"),))
    refused = response({"error": "no such tokens"}, "400 Bad Request")
    theirs = Raw(request("/tokenize"), refused)
    assert facts_of(run_of(tmp_path / "absent", [Raw(request("/tokenize"), missing), CALL])).asked == 1
    assert facts_of(run_of(tmp_path / "asked", [Raw(theirs.request, refused, tags=(("ask", "1"),)), CALL])).asked == 1
    run = facts_of(run_of(tmp_path / "own", [looked, CALL]))
    assert (run.asked, run.good, run.groups) == (1, 1, ())
    assert facts_of(run_of(tmp_path / "theirs", [theirs, CALL])).asked == 2


def test_a_diagnosis_of_its_own_requests_blames_nobody_for_them(tmp_path: Path) -> None:
    run_of(tmp_path, [EMPTY, CALL])
    said = {"headline": "Healthy: a tool call arrives.", "healthy": True, "outcome": None}
    (tmp_path / "diagnosis.json").write_bytes(msgspec.json.encode(said))
    run = facts_of(tmp_path)
    assert (run.verdict.kind, run.verdict.changes) == ("clean", ())
    assert "by experiment" in " ".join(run.verdict.sentences)
    assert "harness" not in " ".join(run.verdict.sentences)
    undecided = {"headline": "No verdict: the budget ended.", "healthy": False, "outcome": None}
    (tmp_path / "diagnosis.json").write_bytes(msgspec.json.encode(undecided))
    assert facts_of(tmp_path).verdict.kind == "open"


def test_a_pairing_says_whether_they_work_together(tmp_path: Path) -> None:
    run_of(tmp_path, [CALL, REFUSED])
    broken = {
        "code": "gate.template_flag_missing",
        "at_fault": "config",
        "said": "no engine",
        "remedy": "use `--jinja`",
    }
    said = {"headline": "aider does not work with it.", "verdict": "broken", "broken": broken}
    (tmp_path / "pairing.json").write_bytes(msgspec.json.encode(said))
    run = facts_of(tmp_path)
    assert run.verdict.headline == "aider does not work with it."
    assert run.verdict.sentences[0] == "No engine."
    assert [change.change for change in run.verdict.changes] == ["use `--jinja`"]
    assert run.beside[0].grade == "known-answer"


def test_episodes_without_their_traffic_are_told() -> None:
    run = facts_of(Path(__file__).parents[3] / "results" / "published" / "paper-cpu")
    assert run.kind == "grid"
    assert run.grid is not None
    assert (run.grid.episodes, len(run.grid.cells)) == (32, 4)
    assert run.verdict.headline == "0 of 32 episodes reached their goal."
    assert all("overlap" in sentence or "No ranking" in sentence for sentence in run.grid.rankings)
    cell = run.grid.cells[0]
    assert (cell.per_seed.interval, cell.per_seed.low, cell.completed.trials) == ("Wilson", 0.0, 4)


def test_no_command_is_made_of_what_a_manifest_may_hide(tmp_path: Path) -> None:
    for url in ("http://x;rm -rf ~", "http://x/`id`", "http://x/$(id)", "file:///etc", "http://x\n-y"):
        run_of(tmp_path / "run", [EMPTY], manifest=False)
        write_manifest(tmp_path / "run", new_manifest("run-1", upstreams=[UpstreamFacts("up", url, {})]))
        assert "stacktap diagnose" not in facts_of(tmp_path / "run").verdict.changes[0].change
        shutil.rmtree(tmp_path / "run")


TITLE = Raw(request(tools=[]), answer("A title"))
TOO_LONG = Raw(
    request(),
    refusal("request (9796 tokens) exceeds the available context size (4096 tokens), try increasing it", "400 Bad"),
)
CUT = Raw(request(max_tokens=24), answer("It is", finish="length", tokens=24))


def test_requests_without_tools_are_no_success(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [TITLE, TOO_LONG] * 3))
    assert (run.asked, run.offered, run.offered_good, run.rates.without_tools) == (6, 3, 0, 3)
    assert (run.rates.naive.trials, run.rates.fidelity.value) == (3, None)
    said = " ".join(run.verdict.sentences)
    assert "The model did not run for any of the 3 requests with tools" in said
    assert "3 other requests are left out of the rates" in said
    assert run.cells[0].rates.naive.trials == 3
    assert run.checklist is not None
    accepted = next(one for one in run.checklist.entries if one.id == "C04")
    assert "3 of 3 requests with tools were refused for another reason first" in accepted.why


def test_all_outlets_count_alike(tmp_path: Path) -> None:
    folder = run_of(tmp_path, [TITLE, CALL, TEXT, REFUSED, TITLE])
    table = tabulate(seen.judged for seen in RunSource(folder)).as_json()["rates"]
    run = facts_of(folder)
    for name in ("naive", "fidelity", "cleared"):
        ratio = getattr(run.rates, name)
        assert (ratio.hits, ratio.trials) == (table[name]["hits"], table[name]["trials"]), name
    assert run.rates.without_tools == table["without_tools"] == 2


def test_a_pairing_names_what_does_not_fit(tmp_path: Path) -> None:
    run_of(tmp_path, [TITLE, TOO_LONG, TITLE, TOO_LONG], manifest=False)
    command = ["/x/stacktap", "pair", "--context", "4096", "--", "opencode"]
    write_manifest(tmp_path, new_manifest("run-1", command=command))
    words = "opencode sends 9,796 tokens; the server's context is 4,096"
    remedy = "start llama-server with a larger context, `-c 32768` or more"
    said = {
        "headline": "opencode does not work with llama-server b1: it breaks at the step `look`.",
        "verdict": "broken",
        "agent": {"name": "opencode"},
        "server": {"stack": "llamacpp", "version": "b1"},
        "steps": [{"step": "look"}, {"step": "write"}],
        "broken": {"code": "request.context_exceeded", "at_fault": "config", "said": words, "remedy": remedy},
    }
    said["broken"]["step"] = "look"  # type: ignore[index]
    (tmp_path / "pairing.json").write_bytes(msgspec.json.encode(said))
    verdict = facts_of(tmp_path).verdict
    assert verdict.headline == (
        "opencode does not fit a context of 4,096 tokens: llama-server refused every request with tools (2 of 2)."
    )
    assert verdict.sentences[0] == "It broke at the first tool call (step 1 of 2: list the folder)."
    assert "repeat with `stacktap pair --context 32768 -- opencode`" in verdict.changes[0].change
    assert facts_of(tmp_path).groups[0].remedy == remedy


@pytest.mark.parametrize("steps", [5, "look", [7, None], {"step": "look"}])
def test_steps_of_a_pairing_may_be_anything(tmp_path: Path, steps: object) -> None:
    run_of(tmp_path, [TEXT])
    words = "a correct call was written, and it came as text (the server was started with `--skip-chat-parsing`)"
    broken = {"code": "parser.left_as_text", "at_fault": "config", "said": words, "step": "look"}
    said = {"headline": "No.", "verdict": "broken", "steps": steps, "broken": broken, "agent": {"name": "pi"}}
    server = {"stack": "llamacpp", "version": "b1"}
    (tmp_path / "pairing.json").write_bytes(msgspec.json.encode({**said, "server": server}))
    headline = "Started with `--skip-chat-parsing`, llama-server (b1) hands pi its tool calls as plain text."
    assert facts_of(tmp_path).verdict.headline == headline


def test_a_limit_that_the_program_sent_is_not_the_servers(tmp_path: Path) -> None:
    run = facts_of(run_of(tmp_path, [CUT, CUT, Raw(request(max_tokens=3), answer("It", finish="length", tokens=3))]))
    (change,) = run.verdict.changes
    assert change.client
    assert "your program sent 3 and 24" in change.change
    assert "neither the server nor the model is at fault" in run.verdict.sentences[0]
    assert (run.rates.cleared.trials, run.rates.cleared_open.trials) == (3, 0)


def test_replayed_answers_are_said_to_be_so(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nx-stacktap-replayed: ollama-0.30.8-gate/plain\r\n"
    raw = CALL.response.replace(b"HTTP/1.1 200 OK\r\n", head)
    run = facts_of(run_of(tmp_path, [Raw(request(), raw)]))
    assert run.replayed == {"ollama-0.30.8-gate": 1}
    assert run.verdict.sentences[0] == "Answers replayed from a recording of Ollama 0.30.8; no live Ollama was asked."


def test_who_is_at_fault_for_the_first_kind_is_not_said_of_all(tmp_path: Path) -> None:
    alone = facts_of(run_of(tmp_path / "alone", [REFUSED, REFUSED]))
    assert alone.verdict.sentences[0] == "The server's configuration is at fault, not the model."
    mixed = facts_of(run_of(tmp_path / "mixed", [REFUSED, REFUSED, TEXT]))
    assert mixed.verdict.sentences[0] == "Mostly configuration (2 of 3 failures); undecided 1."


def test_an_agent_that_asks_what_server_this_is_changes_no_number(tmp_path: Path) -> None:
    absent = response({"error": {"message": "File Not Found"}}, "404 Not Found")
    looks = [Raw(request(path, "GET"), absent) for path in ("/api/tags", "/api/version", "/favicon.ico")]
    looked = [*looks, Raw(request("/api/show"), absent)]
    alone, among = facts_of(run_of(tmp_path / "alone", [CALL])), facts_of(run_of(tmp_path / "among", [*looked, CALL]))
    assert (among.asked, among.service, among.good) == (1, 4, 1)
    assert (among.rates, among.verdict, among.model_ran) == (alone.rates, alone.verdict, alone.model_ran)
    counted = [next(one for one in run.checklist.entries if one.id == "C11").said for run in (alone, among)]
    assert counted[0] == counted[1]


def test_one_server_with_one_model_is_one_model_by_whatever_names_it_is_asked(tmp_path: Path) -> None:
    other = Raw(request(model="quite another"), CALL.response)
    run = facts_of(run_of(tmp_path, [CALL, other]))
    said = next(line.text for line in run.checklist.scope if line.kind == "scale")
    assert said.startswith("Size: with one model (m)")
