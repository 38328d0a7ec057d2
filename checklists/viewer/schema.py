"""The tables of an index. Changed tables get a new version; an index of another version is made anew."""

from __future__ import annotations

SCHEMA_VERSION = 2

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recording(number INTEGER PRIMARY KEY, name TEXT NOT NULL, scan BLOB, judge BLOB);
CREATE TABLE IF NOT EXISTS exchange(
    id INTEGER PRIMARY KEY,
    recording INTEGER NOT NULL,
    connection INTEGER NOT NULL,
    upstream TEXT NOT NULL,
    tags TEXT NOT NULL,
    started_us INTEGER NOT NULL,
    method TEXT NOT NULL,
    target TEXT NOT NULL,
    seg0 INTEGER NOT NULL, off0 INTEGER NOT NULL,
    seg1 INTEGER NOT NULL, off1 INTEGER NOT NULL,
    needs TEXT NOT NULL,
    status INTEGER NOT NULL,
    first_byte_us INTEGER NOT NULL,
    ended_us INTEGER NOT NULL,
    ended TEXT NOT NULL,
    end_detail TEXT NOT NULL,
    request_bytes INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL,
    judged INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    layer TEXT NOT NULL DEFAULT '',
    fault TEXT NOT NULL DEFAULT '',
    ran TEXT NOT NULL DEFAULT '',
    confidence TEXT NOT NULL DEFAULT '',
    flags TEXT NOT NULL DEFAULT '',
    signature TEXT NOT NULL DEFAULT '',
    stack TEXT NOT NULL DEFAULT '',
    dialect TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    tokens_in INTEGER NOT NULL DEFAULT -1,
    tokens_out INTEGER NOT NULL DEFAULT -1,
    question BLOB NOT NULL DEFAULT x''
);
CREATE INDEX IF NOT EXISTS by_question ON exchange(question) WHERE question <> x'';
CREATE TABLE IF NOT EXISTS said(id INTEGER PRIMARY KEY, words TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS verdict(id INTEGER PRIMARY KEY, outcome BLOB NOT NULL);
"""
"""`judged`: 0 not yet, 1 shown from outcomes.jsonl, 2 judged by this version."""

COLUMNS = (
    "id",
    "recording",
    "connection",
    "upstream",
    "tags",
    "started_us",
    "method",
    "target",
    "status",
    "first_byte_us",
    "ended_us",
    "ended",
    "request_bytes",
    "response_bytes",
    "judged",
    "name",
    "layer",
    "fault",
    "ran",
    "confidence",
    "flags",
    "stack",
    "dialect",
    "model",
    "tokens_in",
    "tokens_out",
)
"""What a row of the list is made of."""
