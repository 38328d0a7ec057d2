"""What counts as a secret in heads, targets, launch flags and environments, and what does not."""

from __future__ import annotations

import time
from base64 import b64encode

import pytest

from proxy.recording.redact import Redactor
from proxy.recording.secret_names import secret_name

KEY = "sk-canary-0123456789"


def head(*lines: str, target: str = "/v1/models") -> bytes:
    return "\r\n".join([f"GET {target} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (f"Authorization: Bearer {KEY}", f"Authorization: Bearer {'*' * 20}"),
        (f"authorization:  {KEY}", f"authorization:  {'*' * 20}"),
        (f"Proxy-Authorization: Bearer {KEY}", f"Proxy-Authorization: Bearer {'*' * 20}"),
        (f"X-Api-Key: {KEY}", f"X-Api-Key: {'*' * 20}"),
        (f"api-key: {KEY}", f"api-key: {'*' * 20}"),
        (f"x-goog-api-key: {KEY}", f"x-goog-api-key: {'*' * 20}"),
        (f"X-My-Token: {KEY}", f"X-My-Token: {'*' * 20}"),
        (f"Client-Secret: {KEY}", f"Client-Secret: {'*' * 20}"),
        (f"Cookie: a=1; session={KEY}", f"Cookie: a=*; session={'*' * 20}"),
        (f"Referer: http://u:{KEY}@h/x?key={KEY}&q=1", f"Referer: http://*:{'*' * 20}@h/x?key={'*' * 20}&q=1"),
    ],
)
def test_secret_headers_are_masked_and_learned(line: str, masked: str) -> None:
    redactor = Redactor()
    found = redactor.request_head(head(line))
    assert found.masked == head(masked)
    assert redactor.mask(f"it said {KEY}!".encode()) == b"it said " + b"*" * 20 + b"!"


@pytest.mark.parametrize(
    "line",
    [
        "Idempotency-Key: stainless-0123456789",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
        "X-Max-Tokens: 12345678",
        "X-RateLimit-Remaining-Tokens: 149984",
        "User-Agent: OpenAI/Python",
        "Keep-Alive: timeout=5",
    ],
)
def test_ordinary_headers_stay(line: str) -> None:
    redactor = Redactor()
    assert redactor.request_head(head(line)).masked == head(line)
    assert not redactor.secrets


def test_basic_credentials_are_learned_apart() -> None:
    redactor = Redactor()
    pair = b64encode(b"somebody7:pa55word!").decode()
    assert redactor.request_head(head(f"Authorization: Basic {pair}")).masked == head(
        "Authorization: Basic " + "*" * len(pair)
    )
    assert redactor.mask(
        b"somebody7 / pa55word! / " + pair.encode()
    ) == b"*********" + b" / " + b"*" * 9 + b" / " + b"*" * len(pair)


def test_query_and_userinfo_of_the_target() -> None:
    redactor = Redactor()
    found = redactor.request_head(head(target=f"/v1/m?key={KEY}&alt=sse&access_token=abc%2Fdef%3D1"))
    assert found.target == f"/v1/m?key={'*' * 20}&alt=sse&access_token={'*' * 13}"
    assert redactor.mask(b"abc/def=1") == b"*" * 9
    assert redactor.target(b"http://me:hunter2222@host/p") == "http://**:**********@host/p"


@pytest.mark.parametrize(
    "dummy", ["x", "EMPTY", "ollama", "none", "sk-no-key-required", "lm-studio", "xxxxxxxx", "abc"]
)
def test_dummy_keys_are_masked_in_place_but_not_hunted(dummy: str) -> None:
    redactor = Redactor()
    masked = redactor.request_head(head(f"Authorization: Bearer {dummy}")).masked
    assert masked == head("Authorization: Bearer " + "*" * len(dummy))
    body = f"the {dummy} server said none".encode()
    assert redactor.mask(body) == body


def test_ordinary_cookie_values_are_not_hunted() -> None:
    redactor = Redactor()
    redactor.request_head(head("Cookie: theme=system; lang=english; n=123456"))
    body = b'{"role": "system", "lang": "english", "n": 123456}'
    assert redactor.mask(body) is body


def test_response_cookies_are_learned_with_their_attributes_kept() -> None:
    redactor = Redactor()
    raw = b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=abc123def456; Path=/; HttpOnly\r\nX-RateLimit-Tokens: 149984\r\n\r\n"
    found = redactor.response_head(raw)
    assert found.raw == raw.replace(b"abc123def456", b"*" * 12)
    assert dict(found.headers)["Set-Cookie"] == "sid=************; Path=/; HttpOnly"
    assert redactor.mask(b"abc123def456") == b"*" * 12


def test_a_head_seen_before_is_masked_anew_once_more_is_known() -> None:
    redactor = Redactor()
    raw = head("X-Echo: later-secret-1")
    assert redactor.request_head(raw).masked == raw
    redactor.learn("later-secret-1")
    assert redactor.request_head(raw).masked == raw.replace(b"later-secret-1", b"*" * 14)


@pytest.mark.parametrize(
    ("arguments", "masked"),
    [
        (["--api-key", KEY, "--port", "1"], ["--api-key", "*" * 20, "--port", "1"]),
        ([f"--api-key={KEY}"], [f"--api-key={'*' * 20}"]),
        ([f"OPENAI_API_KEY={KEY}", "x"], [f"OPENAI_API_KEY={'*' * 20}", "x"]),
        (["-H", f"Authorization: Bearer {KEY}"], ["-H", f"Authorization: Bearer {'*' * 20}"]),
        ([f"http://user7x:{KEY}@host/"], [f"http://******:{'*' * 20}@host/"]),
        (["--upstream", f"a=http://h/?api_key={KEY}"], ["--upstream", f"a=http://h/?api_key={'*' * 20}"]),
        (["--max-tokens", "4096", "--keyboard", "us"], ["--max-tokens", "4096", "--keyboard", "us"]),
        (["say", KEY, "--token", KEY], ["say", "*" * 20, "--token", "*" * 20]),
    ],
)
def test_launch_flags(arguments: list[str], masked: list[str]) -> None:
    redactor = Redactor()
    assert redactor.learn_arguments(arguments) == masked


def test_environment() -> None:
    redactor = Redactor()
    redactor.learn_environment(
        {
            "OPENAI_API_KEY": KEY,
            "HF_TOKEN": "hf_abcdef123456",
            "DB_PASSWORD": "correct7horse",
            "TOKENIZERS_PARALLELISM": "false-but-long-1",
            "MAX_TOKENS": "100000",
            "PATH": "/usr/bin:/bin",
            "BASE_URL": "http://joe:s3cr3tpass@h/",
        }
    )
    for secret in (KEY, "hf_abcdef123456", "correct7horse", "s3cr3tpass"):
        assert redactor.text(f"<{secret}>") == f"<{'*' * len(secret)}>"
    for ordinary in ("false-but-long-1", "100000", "/usr/bin:/bin"):
        assert redactor.text(ordinary) == ordinary


def test_note_fields_are_masked_in_depth() -> None:
    redactor = Redactor()
    redactor.learn(KEY)
    fields = {"a": [f"x{KEY}", 1, None, {"b": KEY}], "api_key": "other-secret", "tokens": [1, 2], KEY: True, "f": 1.5}
    assert redactor.fields(fields) == {
        "a": ["x" + "*" * 20, 1, None, {"b": "*" * 20}],
        "api_key": "*" * 12,
        "tokens": [1, 2],
        "*" * 20: True,
        "f": 1.5,
    }


@pytest.mark.parametrize(
    "name",
    [
        *(
            "key",
            "api_key",
            "apikey",
            "apiKey",
            "OPENAI_API_KEYS",
            "key_id",
            "token",
            "access_token",
            "sig",
            "password",
        ),
        *("X-Amz-Signature", "MYSQL_PWD", "pwd", "ssl-keyfile-password"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        *(
            "keys",
            "keyboard",
            "max_tokens",
            "tokenizer",
            "monkey-business-key-type",
            "design",
            "author",
            "PWD",
            "OLDPWD",
        ),
        *("hotkey", "MONKEY", "GNOME_KEYRING_CONTROL", "CREDENTIALS_DIRECTORY", "ssl-keyfile", "eos_token", "n_token"),
        *("stop-token", "first_token_ms", "completion_token_details"),
    ],
)
def test_names_of_ordinary_things(name: str) -> None:
    assert not secret_name(name.encode())


def test_paths_are_no_secrets() -> None:
    redactor = Redactor()
    redactor.learn_environment(
        {"PWD": "/home/me/here", "OLDPWD": "/home/me", "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/g.json"}
    )
    assert not redactor.secrets
    command = ["serve", "--pwd", "/home/me/x", "--ssl-key=./server.key", "/home/me/here/model"]
    assert redactor.learn_arguments(command) == command
    assert redactor.fields({"pwd": "/tmp/x"}) == {"pwd": "/tmp/x"}


def test_each_of_several_keys_is_learned() -> None:
    redactor = Redactor()
    redactor.learn_arguments(["llama-server", "--api-key", "first-key-1,second-key-2"])
    redactor.learn_arguments(["aider", "--api-key", "openai=third-key-3"])
    assert redactor.text("first-key-1 second-key-2 third-key-3") == " ".join(["*" * 11, "*" * 12, "*" * 11])


@pytest.mark.parametrize(
    "target", ["/t/password=Tag-Canary-1,seed=3/v1/m?a=1", "/up/t/seed=3%2Cpassword%3DTag-Canary-1/v1"]
)
def test_tags_under_secret_names_are_masked(target: str) -> None:
    redactor = Redactor()
    found = redactor.request_head(head("x-stacktap-tag: seed=1,api_key=Tag-Canary-2", target=target))
    assert b"Canary" not in found.masked
    assert found.target == target.replace("Tag-Canary-1", "*" * 12)
    assert b"x-stacktap-tag: seed=1,api_key=" + b"*" * 12 + b"\r\n" in found.masked
    assert redactor.tags([("seed", "3"), ("password", "x")]) == (("seed", "3"), ("password", "*"))
    assert redactor.text("Tag-Canary-1 Tag-Canary-2") == "*" * 12 + " " + "*" * 12


def test_a_configured_field_is_masked_where_it_comes_back() -> None:
    redactor = Redactor(fields=["ssn"])
    assert redactor.mask(b'{"ssn":"078-05-1120"}') == b'{"ssn":"***********"}'
    assert redactor.mask(b"078-05-1120 is known") == b"*********** is known"
    redactor.mask(rb'{"arguments":"{\"ssn\":\"219-09-9999\"}"}')
    assert redactor.mask(b"219-09-9999") == b"*" * 11


def test_a_thousand_keys_are_learned_in_a_moment() -> None:
    redactor = Redactor()
    keys = [f"{number:04d}-rotating-canary-{number * 7919:x}" for number in range(1000)]
    begun = time.process_time()
    for key in keys:
        redactor.request_head(head(f"Cookie: sid={key}"))
    assert time.process_time() - begun < 15
    said = " ".join(keys)
    assert redactor.text(said) == " ".join("*" * len(key) for key in keys)
