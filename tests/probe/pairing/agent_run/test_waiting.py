"""What asks for a person, and what only sounds like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.pairing.agent_run.waiting import plain_text, waits_for_a_person


@pytest.mark.parametrize(
    "line",
    [
        "Proceed? [y/N]",
        "Add .aider* to .gitignore (recommended)? (Y)es/(N)o [Yes]:",
        "Allow this command? (yes/no/always)",
        "Press Enter to continue...",
        "Press <enter> to confirm",
        "press any key",
        "Hit RETURN to go on",
        "Do you trust the files in this folder?",
        "Do you want to run this?",
        "Are you sure you want to overwrite it?",
        "Would you like to install it now?",
        "Please log in: https://auth.example.org/oauth/authorize?client=1",
        "Open https://example.org/login/device and enter the code ABCD-1234",
        "To authenticate, visit https://example.org/device",
        "You are not logged in.",
        "Please sign in first",
        "Enter your API key:",
        "What's your password?\nPassword:",
        "Password for 'https://example.org':",
        "? Select a model (use arrow keys)",
        "Choose an option:",
        "Waiting for user input",
        "Waiting for approval",
        "This command requires approval",
        "stdin is not a terminal",
        "the input device is not a TTY",
        "ERROR Raw mode is not supported on the current process.stdin",
        "EOFError: EOF when reading a line",
        "Overwrite file? >",
        "OSError: [Errno 6] No such device or address: '/dev/tty'",
        "sh: 1: cannot open /dev/tty: No such device or address",
    ],
)
def test_lines_that_ask_for_a_person(line):
    found = waits_for_a_person(f"starting up\n\x1b[1m{line}\x1b[0m\n  \n")
    assert found == line.split("\n")[-1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I wrote the file and read it back.",
        "Connection refused: http://127.0.0.1:8080/v1/chat/completions",
        "error: model not found",
        "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'choices'",
        "Retrying in 2 s (attempt 3 of 10)",
        "Skipping login: no account",
        "Never press enter here",
        "Running without asking: do not ask [y/N]",
        "INFO: 200 OK",
        "Continuing with the task.",
        "see https://example.org/docs/configuration for more",
    ],
)
def test_lines_that_do_not(text):
    assert waits_for_a_person(text) == ""


def test_the_last_question_is_quoted_and_an_old_one_forgotten():
    assert waits_for_a_person("First? [y/N]\nok\nSecond? [y/N]\n") == "Second? [y/N]"
    assert waits_for_a_person("First? [y/N]\n" + "line\n" * 30) == ""


def test_a_line_that_was_written_over_is_read_as_it_stood_last():
    assert waits_for_a_person("loading 10%\rloading 90%\r\x1b[2KContinue? [y/N] ") == "Continue? [y/N]"
    assert plain_text("a\r\nb\x1b]0;title\x07c\n") == "a\nbc\n"


def test_a_long_line_is_quoted_in_part():
    found = waits_for_a_person("x" * 5000 + " continue? [y/N]" + " " * 3)
    assert 0 < len(found) <= 240


@given(st.text())
def test_any_text_is_read(text):
    assert waits_for_a_person(text) in ("", *[line.strip() for line in plain_text(text).split("\n")]) or len(text) > 240
