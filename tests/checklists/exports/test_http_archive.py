"""HAR files: by the format's schema, true to the record, and readable again by `classify --exchange`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from checklists.exports.http_archive import http_archive
from checklists.exports.selection import ExportRun
from proxy.classify import classify
from proxy.exchange_files import load_exchanges
from proxy.exchange_view import view_of
from tests.support.exported import HOSTILE, NAMES, binary_kind, captured_raw, every_kind, opened, raw_request
from tests.support.journalled import Raw, record

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "exports" / "har-1.2.schema.json").read_text("utf-8"))


def archive(run: ExportRun) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(b"".join(http_archive(run, "1")))
    jsonschema.Draft202012Validator(SCHEMA).validate(whole)
    return whole["log"]


def test_every_kind_of_exchange_has_its_place(tmp_path: Path) -> None:
    log = archive(every_kind(tmp_path))
    entries = {entry["_attempt"]: entry for entry in log["entries"]}
    assert {name: entry["_outcome"]["name"] for name, entry in entries.items()} == {
        str(number): name for number, name in NAMES.items() if number != 5
    }
    assert [(one["attempt"], one["outcome"], one["bytes_sent"]) for one in log["_not_http"]] == [
        ("5", "transport.not_http", 8)
    ]
    assert (entries["4"]["response"]["status"], entries["4"]["response"]["_error"]) == (0, "upstream_refused")
    assert entries["3"]["response"]["_error"] == "upstream_closed"
    assert "_error" not in entries["1"]["response"]


def test_chunk_times_and_timings_are_those_of_the_record(tmp_path: Path) -> None:
    run = every_kind(tmp_path)
    entry = archive(run)["entries"][0]
    exchange = next(iter(run)).exchange
    assert entry["response"]["_chunks"] == [
        {"at_us": piece.at_us, "start": piece.start, "end": piece.end} for piece in exchange.pieces("response")
    ]
    assert entry["timings"]["wait"] == exchange.pieces("response")[0].at_us / 1000
    assert entry["time"] == pytest.approx(sum(value for value in entry["timings"].values() if value > 0))


def test_binary_bodies_are_base64_and_sizes_are_those_of_the_wire(tmp_path: Path) -> None:
    first, second = archive(binary_kind(tmp_path))["entries"]
    assert base64.b64decode(first["request"]["postData"]["text"]) == b"\x00\xff\xfe body"
    assert first["request"]["postData"]["_encoding"] == "base64"
    assert base64.b64decode(first["response"]["content"]["text"]) == b"\xff\x00\xfe"
    content = second["response"]["content"]
    assert base64.b64decode(content["text"]) == b"\x00\xffzipped"
    assert content["size"] - content["compression"] == second["response"]["bodySize"]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    entries = archive(every_kind(tmp_path))["entries"]
    said = json.loads(entries[-1]["response"]["content"]["text"])["choices"][0]["message"]["content"]
    assert said == HOSTILE


def test_secrets_stay_masked(tmp_path: Path) -> None:
    request = raw_request(
        b"{}", ("Authorization", "Bearer sk-secretsecretsecret"), target="/v1/x?api_key=verysecretkey"
    )
    record(tmp_path, [Raw(request, b"HTTP/1.1 204 No Content\r\n\r\n")])
    text = b"".join(http_archive(opened(tmp_path), "1"))
    assert b"secretsecret" not in text
    assert b"verysecretkey" not in text
    assert b"api_key=*" in text


@pytest.mark.parametrize("target", ["/a b", "/\xe9?x=\xff", "http://h:1/v1/x?y#z", "*", "//evil/x", "/<'\">"])
def test_odd_targets_are_urls(target: str, tmp_path: Path) -> None:
    record(tmp_path, [Raw(raw_request(b"{}", target=target), b"HTTP/1.1 204 No Content\r\n\r\n")])
    entries = archive(opened(tmp_path))["entries"]
    assert all(entry["request"]["url"].startswith("http://relay/") for entry in entries)


def test_captured_exchanges_read_back_have_the_same_outcome(tmp_path: Path) -> None:
    record(tmp_path, captured_raw()[::6])
    run = opened(tmp_path)
    whole = b"".join(http_archive(run, "1"))
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(whole))
    alone = [classify(view_of(seen.exchange)).name for seen in run]
    again = [classify(one.view).name for one in load_exchanges(whole)]
    assert len(alone) > 100
    assert alone == again
