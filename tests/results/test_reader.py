"""Journals as they are found: torn, corrupt, newer; what can be read is read, what is missing is said."""

from __future__ import annotations

import json
import shutil
import time
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import ConnectionClosed, RequestData, RequestStarted, ResponseData
from results import record
from results.reader import RunReader
from results.record import NewerSchemaError, Note, decode, encode
from results.segments import compress

_NUMBERS = count()
HISTORY = json.dumps(
    [{"role": "user", "content": "the same long history, again and again, é"}] * 40, ensure_ascii=False
)


def make_run(folder: Path, attempts: int = 6, *, rotate: bool = False) -> None:
    """Attempts whose bodies share their beginning, answered in two reads each; one is left open at the end."""
    recorder = Recorder(folder, "r", Redactor(), segment_bytes=6000 if rotate else 1 << 30)
    recorder.start()
    for number in range(1, attempts + 1):
        now = time.monotonic_ns()
        body = (HISTORY[:-1] + f', "turn {number}"' * number + "]").encode()
        head = b"POST /v1 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        recorder.put(RequestStarted(number, now, "up", (), head, body[:2000], b"/v1", False))
        recorder.put(RequestData(number, now, body[2000:], True))
        recorder.put(ResponseData(number, now, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab"))
        recorder.put(ResponseData(number, now, b"\xff\xfe\xc3\xa9"))
        recorder.put(ConnectionClosed(number, now))
        if rotate:
            time.sleep(0.02)
    recorder.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "run"
    make_run(folder)
    return folder


def read(folder: Path) -> tuple[RunReader, dict[int, bytes]]:
    reader = RunReader(folder)
    return reader, {one.attempt: one.wire("request") + one.wire("response") for one in reader}


def copy_with(sound: Path, base: Path, live: bytes) -> Path:
    folder = base / str(next(_NUMBERS))
    shutil.copytree(sound, folder)
    (folder / "wire.jsonl").write_bytes(live)
    return folder


def test_repeated_bodies_are_references_and_come_back_whole(sound: Path) -> None:
    raw = (sound / "wire.jsonl").read_bytes()
    assert raw.count(b"again and again") < 60
    assert b'"parts"' in raw
    reader, found = read(sound)
    assert not reader.problems
    for number in range(1, 7):
        body = (HISTORY[:-1] + f', "turn {number}"' * number + "]").encode()
        assert found[number].endswith(b"Content-Length: 6\r\n\r\nab\xff\xfe\xc3\xa9")
        assert body in found[number]


def test_references_stay_inside_their_segment(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 20, rotate=True)
    assert len(list((tmp_path / "run").glob("*.zst"))) >= 2
    reader, found = read(tmp_path / "run")
    assert not reader.problems
    assert len(found) == 20
    (tmp_path / "run" / "wire.000001.jsonl.zst").unlink()
    reader, rest = read(tmp_path / "run")
    sound = {one.attempt for one in RunReader(tmp_path / "run") if not one.damaged}
    assert len(sound) >= 10
    assert all(rest[number] == found[number] for number in sound)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1))
def test_cut_anywhere(sound: Path, tmp_path: Path, where: float) -> None:
    raw = (sound / "wire.jsonl").read_bytes()
    _, whole = read(sound)
    cut = int(len(raw) * where)
    reader, found = read(copy_with(sound, tmp_path, raw[:cut]))
    torn = cut > 0 and raw[cut - 1 : cut] != b"\n"
    assert reader.problems.torn_tail == torn
    assert reader.problems.corrupt_lines == 0
    for number, wire in found.items():
        request = len(whole[number]) - 45
        assert whole[number].startswith(wire) or whole[number][:request].startswith(wire[: min(len(wire), request)])
    ends = [one.end for one in RunReader(copy_with(sound, tmp_path, raw[:cut]))]
    assert ends.count("recorder_killed") <= 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.floats(0, 0.9999), st.binary(max_size=12)), min_size=1, max_size=6))
def test_corruption_anywhere_is_survived_and_marked(
    sound: Path, tmp_path: Path, changes: list[tuple[float, bytes]]
) -> None:
    raw = bytearray((sound / "wire.jsonl").read_bytes())
    original = bytes(raw)
    for where, junk in changes:
        at = int(len(raw) * where)
        raw[at : at + len(junk)] = junk
    _, whole = read(sound)
    try:
        reader = RunReader(copy_with(sound, tmp_path, bytes(raw)))
        exchanges = list(reader)
    except NewerSchemaError:
        return
    for one in exchanges:
        one.request, one.response  # noqa: B018
        one.opaque("request"), one.opaque("response")
        if one.response is not None:
            one.response.body, one.response.problems  # noqa: B018
    touched, repeated = touched_attempts(original, bytes(raw))
    for one in exchanges:
        if one.attempt in whole and one.attempt not in touched and not one.damaged and not repeated:
            assert one.wire("request") + one.wire("response") == whole[one.attempt]


def touched_attempts(original: bytes, changed: bytes) -> tuple[set[int], bool]:
    """(attempts of the lines that were changed, whether a request was among them, which others may refer to)."""
    touched, repeated, at = set(), False, 0
    for line in original.splitlines(keepends=True):
        if changed[at : at + len(line)] != line:
            found = json.loads(line)
            touched.add(found.get("attempt", 0))
            repeated = repeated or found["event"] == "request" or found.get("direction") == "request"
        at += len(line)
    return touched, repeated


@pytest.mark.parametrize("index", range(1, 12))
def test_a_missing_line_is_noticed(sound: Path, tmp_path: Path, index: int) -> None:
    lines = (sound / "wire.jsonl").read_bytes().splitlines(keepends=True)
    kind = json.loads(lines[index])["event"]
    folder = copy_with(sound, tmp_path, b"".join(lines[:index] + lines[index + 1 :]))
    exchanges = {one.attempt: one for one in RunReader(folder)}
    attempt = json.loads(lines[index])["attempt"]
    if kind == "end":
        assert exchanges[attempt].end == "recorder_killed"
    elif kind != "head":
        assert exchanges[attempt].damaged


def test_corrupt_line_is_counted_and_located(sound: Path, tmp_path: Path) -> None:
    lines = (sound / "wire.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = b'{"event":"chunk","attempt":1\n'
    folder = copy_with(sound, tmp_path, b"".join(lines))
    reader = RunReader(folder)
    damaged = [one.attempt for one in reader if one.damaged]
    assert (reader.problems.corrupt[0].file, reader.problems.corrupt[0].line) == ("wire.jsonl", 4)
    assert damaged
    assert any("wire.jsonl:4" in said for said in reader.problems.describe())


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":99999999999999,"bytes":1,"data":"x"}',
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":0,"bytes":99999999999999}',
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":0,"bytes":-5}',
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":0,"bytes":1,"parts":[[7,0,99]]}',
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":0,"bytes":1,"parts":[[1,-1,5]]}',
        b'{"event":"chunk","attempt":1,"direction":"response","at_us":1,"start":0,"bytes":1,"base64":"#"}',
        b'{"event":"end","attempt":1,"at_us":1,"end":"complete","request_bytes":5,"response_bytes":99999999999999999999}',
        b'{"event":"nothing"}',
        b"null",
        b"\xff\xff",
        b"",
    ],
)
def test_hostile_lines(tmp_path: Path, line: bytes) -> None:
    header = b'{"event":"segment","schema":1,"run":"r","segment":1,"epoch_us":1,"window":8,"window_bytes":99}\n'
    (tmp_path / "wire.jsonl").write_bytes(header + line + b"\n")
    reader = RunReader(tmp_path)
    for exchange in reader:
        assert len(exchange.wire("response")) < 1 << 20
    assert reader.problems.corrupt_lines >= 1


def test_newer_schema_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    raw = b'{"event":"segment","schema":2,"run":"r","segment":1,"epoch_us":1}\n{"event":"other"}\n'
    (tmp_path / "wire.jsonl").write_bytes(raw)
    with pytest.raises(NewerSchemaError, match="update stacktap"):
        RunReader(tmp_path)
    assert (tmp_path / "wire.jsonl").read_bytes() == raw


def test_older_schema_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(
        record, "MIGRATIONS", {1: lambda line: {**line, "kind": line["was"]}, 2: lambda line: {**line, "time_us": 7}}
    )
    note = decode(b'{"event":"note","was":"x","fields":{}}', 1)
    assert note == Note("x", 7, {})
    with pytest.raises(ValueError, match="not known"):
        decode(b'{"event":"note"}', 0)


def test_memory_does_not_grow_with_the_journal(tmp_path: Path) -> None:
    import tracemalloc

    from results.journal import JournalWriter
    from results.record import End, Request

    writer = JournalWriter(tmp_path / "run", "r", segment_bytes=1 << 20)
    text = "GET / HTTP/1.1\r\n\r\n"
    for number in range(1, 8001):
        writer.append([encode(Request(number, 1, 1, "u", 1, 18, "GET", "/", complete=True, data=text))])
        writer.append([encode(Note("pad", 1, {"pad": "x" * 1000}, number)), encode(End(number, 1, "complete", 18, 0))])
        if writer.rotation_due:
            writer.rotate()
    writer.close()
    tracemalloc.start()
    assert sum(1 for _ in RunReader(tmp_path / "run")) == 8000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 0.9999), flip=st.integers(0, 255))
def test_damaged_compression_is_said(sound: Path, tmp_path: Path, where: float, flip: int) -> None:
    folder = tmp_path / str(next(_NUMBERS))
    shutil.copytree(sound, folder)
    (folder / "wire.jsonl").rename(folder / "wire.000001.jsonl")
    compress(folder, 1)
    path = folder / "wire.000001.jsonl.zst"
    raw = bytearray(path.read_bytes())
    at = int(len(raw) * where)
    if flip and raw[at] != flip:
        raw[at] = flip
    else:
        del raw[at:]
    path.write_bytes(raw)
    reader = RunReader(folder)
    found = {one.attempt: one.wire("request") + one.wire("response") for one in reader}
    assert reader.problems or found == read(sound)[1]
