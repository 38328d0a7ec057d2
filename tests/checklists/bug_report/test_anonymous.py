"""Nothing in a bug report points to a person, a machine or a key, as far as that can be recognised."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.bug_report.anonymous import Anonymiser

TEXTS = [
    ("in /home/maria/work/x.py", "in /home/user/work/x.py"),
    (r"C:\Users\Maria\x and C:\\Users\\Maria\\y", r"C:\Users\user\x and C:\\Users\\user\\y"),
    ("/Users/jo.smith/Library", "/Users/user/Library"),
    (r"\/home\/maria\/x", r"\/home\/user\/x"),
    ("/home/ubuntu/x stays", "/home/ubuntu/x stays"),
    ("write to jo.smith+x@mail.example.co.uk now", "write to someone@example.com now"),
    ("maria@laptop:~/x$ ls", "user@host:~/x$ ls"),
    ("npm i opencode-ai@1.18.33 @scope/name", "npm i opencode-ai@1.18.33 @scope/name"),
    ("at 192.168.1.17:8080, 10.0.0.3", "at 192.0.2.1:8080, 192.0.2.1"),
    ("at 127.0.0.1:8080 and 0.0.0.0", "at 127.0.0.1:8080 and 0.0.0.0"),
    ("version 1.2.3 and 999.1.1.1", "version 1.2.3 and 999.1.1.1"),
    ("fd00:1:2:3:4:5:6:7 here", "2001:db8::1 here"),
    ("http://gpu-box:8000/v1 and http://localhost:1", "http://host.example:8000/v1 and http://localhost:1"),
    ("https://github.com/a/b stays", "https://github.com/a/b stays"),
    ("see build.corp and nas.local", "see host.example and host.example"),
    ("key sk-abcdefghijklmnop1234 here", "key *** here"),
    ("hf_abcdefghijklmnopqrstuvwxyz", "***"),
    ("Authorization: Bearer abcdefghijkl.mnop", "Authorization: Bearer ***"),
    ("API_KEY=abcdef123 run", "API_KEY=*** run"),
    ('{"password": "hunter22"}', '{"password": "***"}'),
    (r"{\"api_key\": \"hunter22\"}", r"{\"api_key\": \"***\"}"),
    ("max_tokens=1234567", "max_tokens=1234567"),
    ("http://me:secret@host.example/x", "http://***@host.example/x"),
    ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "(private key)"),
]


@pytest.mark.parametrize(("given", "shown"), TEXTS)
def test_texts(given: str, shown: str) -> None:
    assert Anonymiser().text(given) == shown


def test_a_user_learnt_from_a_folder_is_hidden_everywhere_as_a_word() -> None:
    hide = Anonymiser(users=["zoe"], hosts=["bigbox.example.org"])
    hide.learn("cd /home/maria && maria2@workstation:~/x$")
    shown = hide.text("maria, zoe's; marias; bigbox; bigbox.example.org; workstation; maria2")
    assert shown == "user, user's; marias; host.example; host.example; host.example; user"


def test_ordinary_names_are_left() -> None:
    hide = Anonymiser(users=["root", "user", "jo"], hosts=["localhost", "127.0.0.1", ""])
    assert hide.text("root, user, jo, localhost, 127.0.0.1") == "root, user, jo, localhost, 127.0.0.1"


def test_a_json_value_keeps_its_shape() -> None:
    value = {
        "model": "m",
        "n": 3,
        "messages": [{"content": "/home/maria/x", "api_key": "abcdefgh"}],
        "/home/maria": None,
    }
    assert Anonymiser().value(value) == {
        "model": "m",
        "n": 3,
        "messages": [{"content": "/home/user/x", "api_key": "***"}],
        "/home/user": None,
    }
    schema = {"properties": {"api_key": {"type": "string"}, "token": {"type": "string"}}, "required": ["api_key"]}
    assert Anonymiser().value(schema) == schema


def test_paths_in_flags_are_cut() -> None:
    command = [
        "/opt/x/llama-server",
        "-m",
        "/srv/models/Q4.gguf",
        "--host",
        "0.0.0.0",
        "--chat-template-file=/a/b.jinja",
    ]
    command += ["--lora", "~/secret plans/l.gguf", "-c", "4096", "org/model", "C:\\models\\m.gguf", "/"]
    assert Anonymiser().flags(command) == [
        "llama-server", "-m", "Q4.gguf", "--host", "0.0.0.0", "--chat-template-file=b.jinja",
        "--lora", "l.gguf", "-c", "4096", "org/model", "m.gguf", "/",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_taken_and_a_second_look_changes_nothing(value: object) -> None:
    once = Anonymiser().value(value)
    json.dumps(once)
    assert Anonymiser().value(once) == once


@pytest.mark.parametrize("part", ["a@", "key=", "a.", "/home/", "1.", "ab:", "eyJa.", "sk-", "x-", '":"', "aaaa "])
def test_no_text_takes_long(part: str) -> None:
    began = time.process_time()
    Anonymiser(users=["somebody"]).text(part * (200_000 // len(part)))
    assert time.process_time() - began < 2
