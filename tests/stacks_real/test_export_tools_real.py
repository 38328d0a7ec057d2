"""Exports in the tools that they are for.

HAR, OTLP, Parquet and Inspect's log are read by their own libraries in an environment of its own (`make exports-env`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from checklists.exports.span_attributes import GEN_AI
from stacks.locations import environments_folder
from tests.support.exported import HOSTILE, NAMES, every_kind, grid_run, opened
from tests.support.recorded import Script
from tests.support.servers import ROOT

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PYTHON = environments_folder() / "exports" / "bin" / "python"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def in_exports(*words: str, cwd: Path) -> str:
    """What a command in the exports' environment prints."""
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is not there: run `make exports-env`")
    done = subprocess.run(
        [str(PYTHON), *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cwd / "cache")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(run: Path, form: str, name: str, *more: str) -> Path:
    """The file that `stacktap export` writes with the environment's libraries."""
    out = run.parent / name
    in_exports("-m", "stacktap", "export", str(run), "--to", form, "--out", str(out), *more, cwd=run.parent)
    return out


@pytest.fixture
def run(tmp_path: Path) -> Path:
    every_kind(tmp_path / "run")
    return tmp_path / "run"


READ_HAR = """
import json, sys
from haralyzer import HarParser
parser = HarParser(json.loads(open(sys.argv[1]).read()))
print(json.dumps([[e.request.method, e.response.status, e.response.contentSize] for e in parser.pages[0].entries]))
"""


def test_a_har_library_reads_the_archive(run: Path) -> None:
    out = exported(run, "har", "out.har")
    read = json.loads(in_exports("-c", READ_HAR, str(out), cwd=run.parent))
    bodies = [
        len(seen.exchange.response.body) if seen.exchange.response is not None else 0
        for seen in opened(run)
        if seen.exchange.request is not None
    ]
    assert [status for _, status, _ in read] == [200, 200, 200, 0, 400, 200]
    assert [method for method, _, _ in read] == ["POST"] * 6
    assert [size for _, _, size in read] == bodies


READ_OTLP = """
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

def spans(message):
    return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]

def plain(value):
    kind = value.WhichOneof("value")
    return [plain(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)

def facts(message):
    return [
        [s.trace_id.hex(), s.span_id.hex(), s.parent_span_id.hex(), s.name, s.kind, s.start_time_unix_nano,
         s.end_time_unix_nano, s.status.code, s.status.message, [[a.key, plain(a.value)] for a in s.attributes],
         [[e.time_unix_nano, e.name] for e in s.events]]
        for s in spans(message)
    ]

line = json.loads(open(sys.argv[1]).read())
for resource in line["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            # JSON of OTLP has ids in hexadecimal, where the JSON of protobuf has base64.
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
from_json = json_format.ParseDict(line, TracesData())
from_protobuf = ExportTraceServiceRequest.FromString(open(sys.argv[2], "rb").read())
assert from_json.resource_spans[0].resource == from_protobuf.resource_spans[0].resource
print(json.dumps([facts(from_json), facts(from_protobuf)]))
"""


def test_the_official_decoder_reads_spans_in_both_encodings(run: Path) -> None:
    from checklists.exports.otlp import protobuf_messages
    from checklists.exports.spans import spans_of
    from stacktap import __version__

    out = exported(run, "otel", "out.jsonl", "--content")
    (message,) = protobuf_messages(spans_of(opened(run), content=True), "run", __version__)
    (run.parent / "out.pb").write_bytes(message)
    from_json, from_protobuf = json.loads(
        in_exports("-c", READ_OTLP, str(out), str(run.parent / "out.pb"), cwd=run.parent)
    )
    assert from_json == from_protobuf
    outcomes = [dict(span[9]).get("stacktap.outcome") for span in from_json]
    assert [name for name in outcomes if name] == list(NAMES.values())
    said = [json.loads(text) for span in from_json for name, text in span[9] if name == "gen_ai.output.messages"]
    assert said[-1][0]["parts"][0]["content"] == HOSTILE


NAMES_OF_ATTRIBUTES = """
import json, warnings
warnings.simplefilter("ignore")
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
from opentelemetry.semconv.schemas import Schemas
print(json.dumps([[getattr(names, n) for n in dir(names) if n.startswith("GEN_AI")
                   and isinstance(getattr(names, n), str)], [schema.value for schema in Schemas]]))
"""


def test_attributes_are_those_of_the_conventions(tmp_path: Path) -> None:
    from checklists.exports.span_attributes import SCHEMA_URL

    known, schemas = json.loads(in_exports("-c", NAMES_OF_ATTRIBUTES, cwd=tmp_path))
    assert {row.name for row in GEN_AI} <= set(known)
    assert SCHEMA_URL in schemas


READ_PARQUET = """
import duckdb, json, sys
file = duckdb.read_parquet(sys.argv[1])
rows = duckdb.sql("SELECT attempt, outcome, status, len(tools), tool_calls[1].name, content, temperature, "
                  "epoch_us(started) = started_us, map_keys(tags) FROM file ORDER BY attempt").fetchall()
kinds = dict(zip(file.columns, map(str, file.types)))
faults = duckdb.sql("SELECT at_fault, count(*) FROM file GROUP BY ALL ORDER BY ALL").fetchall()
print(json.dumps([rows, kinds, faults]))
"""


def test_duckdb_queries_the_table(run: Path) -> None:
    out = exported(run, "parquet", "it's a [table]*.parquet")
    rows, kinds, faults = json.loads(
        in_exports("-c", READ_PARQUET, str(out.rename(run.parent / "t.parquet")), cwd=run.parent)
    )
    assert {row[0]: row[1] for row in rows} == NAMES
    assert [row[2] for row in rows] == [200, 200, 200, None, None, 400, 200]
    assert rows[1][3:5] == [1, "get_weather"]
    assert rows[1][6] == 0.5
    assert rows[6][5] == HOSTILE
    assert all(row[7] for row in rows)
    assert rows[1][8] == ["episode", "k"]
    assert kinds["attempt"] == "BIGINT"
    assert kinds["flags"] == "VARCHAR[]"
    assert kinds["started"] == "TIMESTAMP WITH TIME ZONE"
    assert sum(count for _, count in faults) == 7


READ_INSPECT = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1])
summaries = read_eval_log_sample_summaries(sys.argv[1])
print(json.dumps([
    [[s.id, s.scores["outcome"].value, s.output.completion, s.output.model,
      [c.function for m in s.messages for c in getattr(m, "tool_calls", None) or []]] for s in log.samples],
    [s.id for s in summaries], log.eval.task, log.status]))
"""


@pytest.mark.parametrize("name", ["out.eval", "out.json"])
def test_inspect_lists_the_samples(name: str, run: Path) -> None:
    out = exported(run, "inspect", name)
    samples, summaries, task, status = json.loads(in_exports("-c", READ_INSPECT, str(out), cwd=run.parent))
    assert {int(sample[0]): sample[1] for sample in samples} == {n: name for n, name in NAMES.items() if n != 5}
    assert sorted(summaries) == [sample[0] for sample in samples]
    assert samples[1][4] == ["get_weather"]
    assert samples[-1][2] == HOSTILE
    assert (task, status) == ("stacktap/exchanges", "success")


READ_EPISODES = """
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
print(json.dumps([log.eval.task, [
    [s.id, s.scores["task"].value, s.scores["outcome"].value, [m.role for m in s.messages], s.metadata["cell"]["stack"]]
    for s in log.samples]]))
"""


def test_the_episodes_of_a_grid_are_samples_with_their_oracles_score(tmp_path: Path) -> None:
    grid_run(tmp_path / "grid")
    out = exported(tmp_path / "grid", "inspect", "grid.eval")
    task, samples = json.loads(in_exports("-c", READ_EPISODES, str(out), cwd=tmp_path))
    assert task == "stacktap/episodes"
    assert sorted(samples) == [
        ["broken", "I", "transport.stream_truncated", ["user", "assistant"], "llamacpp"],
        ["done", "C", "ok.final_answer", ["user", "assistant", "assistant"], "llamacpp"],
        ["failed", "I", "ok.final_answer", ["user", "assistant", "assistant"], "llamacpp"],
    ]


def test_a_run_that_asked_no_model_is_no_log(tmp_path: Path) -> None:
    script = Script(tmp_path / "run")
    script.opaque(b"\x00", b"\x01")
    script.run()
    if not PYTHON.exists():
        pytest.skip(f"{PYTHON} is not there: run `make exports-env`")
    words = [str(PYTHON), "-m", "stacktap", "export", str(tmp_path / "run"), "--to", "inspect"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "asked a model" in done.stderr) == (3, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
