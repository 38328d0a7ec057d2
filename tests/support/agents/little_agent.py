"""A little agent of ours: it asks, runs the tool that is called for, sends the result back, and ends.

`--tool weather`: a tool `get_weather(city)` that writes what it is told to (`--note`) into canary_note.txt and whose
result ends in the next trigger; its requests are those that the captured Ollama servers were asked, so that a replay
can answer them. `--tool bash`: a tool `bash(command)` that runs it here. Like common agents it repeats a request that
failed with a 5xx or without an answer, and gives up on a 4xx.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TOOLS = {
    "weather": ("get_weather", "Weather in a city", "city"),
    "bash": ("bash", "Run a shell command in the working folder", "command"),
}
RESULT = "18 C [[answer]]"
ROUTES = {"v1": "/v1/chat/completions", "api": "/api/chat"}


class RefusedError(Exception):
    """The server says that the request is wrong."""


def main() -> int:
    """Exit code 0 where the conversation came to an end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--api", choices=sorted(ROUTES), default="v1")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--tool", choices=sorted(TOOLS), default="weather")
    parser.add_argument("--note", default="")
    parser.add_argument("--ask", default="Please. ", help="the user's message")
    parser.add_argument("--words", type=int, default=0, help="words of the user's message, to make it long")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--patience", type=float, default=10.0, help="seconds until an answer must come")
    parser.add_argument("--once", action="store_true", help="end after the tool was run, without telling the model")
    given = parser.parse_args()
    messages: list[dict[str, Any]] = [{"role": "user", "content": given.ask + "word " * given.words}]
    try:
        while True:
            text, calls = ask(given, messages)
            print(text, flush=True)
            if not calls:
                return 0
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            for call in calls:
                link = {"tool_call_id": call["id"]} if given.api == "v1" else {"tool_name": call["function"]["name"]}
                messages.append({"role": "tool", "content": result_of(given, call["function"]), **link})
            if given.once:
                return 0
    except (RefusedError, OSError, ValueError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 1


def result_of(given: argparse.Namespace, function: dict[str, Any]) -> str:
    """What the tool gives back."""
    if given.tool == "weather":
        Path("canary_note.txt").write_text(given.note + "\n", encoding="utf-8")
        return RESULT
    arguments = function["arguments"]
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    done = subprocess.run(arguments["command"], shell=True, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout + done.stderr


def tool(kind: str) -> dict[str, Any]:
    """The tool as it is offered."""
    name, description, argument = TOOLS[kind]
    schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def ask(given: argparse.Namespace, messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Text and calls of one answer, after some tries."""
    body: dict[str, Any] = {
        "model": given.model,
        "messages": messages,
        "stream": given.stream,
        "tools": [tool(given.tool)],
    }
    body |= {"options": {"num_predict": 64}} if given.api == "api" else {"max_tokens": 64}
    if given.stream and given.tool == "bash" and given.api == "v1":
        body["stream_options"] = {"include_usage": True}
    for left in reversed(range(given.tries)):
        try:
            return send(given, body)
        except urllib.error.HTTPError as failure:
            said = failure.read().decode("utf-8", "replace")
            if failure.code < 500 or not left:
                raise RefusedError(f"{failure.code} {said}") from None
            print(f"retrying after {failure.code} {said}", file=sys.stderr)
        except (OSError, ValueError) as failure:
            if not left:
                raise
            print(f"retrying after {failure!r}", file=sys.stderr)
    raise ValueError("no answer")


def send(given: argparse.Namespace, body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """One request. Raises OSError (HTTPError, timeouts), and ValueError for an answer that is none."""
    request = urllib.request.Request(
        given.url + ROUTES[given.api], json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=given.patience) as answer:
        data = answer.read().decode("utf-8")
    lines = [line.removeprefix("data: ") for line in data.splitlines() if line.strip()]
    text, calls, ended = "", [], False
    for line in lines if given.stream else [data]:
        if line == "[DONE]":
            continue
        value = json.loads(line)
        ended = ended or bool(value.get("done"))
        if "error" in value:
            raise ValueError(value["error"])
        for choice in value.get("choices", [value]):
            ended = ended or bool(choice.get("finish_reason"))
            message = choice.get("message") or choice.get("delta") or {}
            text += message.get("content") or ""
            calls += [said(call) for call in message.get("tool_calls") or []]
    if not ended:
        raise ValueError("the answer broke off")
    return text, calls


def said(call: dict[str, Any]) -> dict[str, Any]:
    """A call as it goes back into the history."""
    return {key: call[key] for key in ("id", "type", "function") if key in call}


if __name__ == "__main__":
    sys.exit(main())
