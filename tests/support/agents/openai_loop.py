"""A user's own agent on the openai library: Chat Completions, streamed, one tool of its own naming.

Usage: openai_loop.py TASK [MODEL]; OPENAI_BASE_URL and OPENAI_API_KEY as the library reads them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import openai

MAX_TURNS = 12
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "run_in_terminal",
        "description": "Run one line in the user's terminal and return what it prints.",
        "parameters": {
            "type": "object",
            "properties": {
                "reason": {"type": "string", "description": "Why this is needed"},
                "line": {"type": "string", "description": "The shell command line"},
                "risk": {"type": "string", "enum": ["none", "some"]},
            },
            "required": ["reason", "line", "risk"],
        },
    },
}


def answer(client: openai.OpenAI, model: str, messages: list[Any]) -> dict[str, Any]:
    """One streamed answer, put together as an assistant message."""
    text, calls = "", {}
    for chunk in client.chat.completions.create(model=model, messages=messages, tools=[TOOL], stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or []:
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.id or call["id"]
                if piece.function is not None:
                    call["name"] += piece.function.name or ""
                    call["arguments"] += piece.function.arguments or ""
    made = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in calls.values()
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def main() -> int:
    """Work until the model answers without a call; 0 then, 1 where it never does."""
    task, model = sys.argv[1], (sys.argv[2:] or ["default"])[0]
    messages: list[Any] = [
        {"role": "system", "content": "You keep notes for the user. Work step by step."},
        {"role": "user", "content": task},
    ]
    with openai.OpenAI(max_retries=0) as client:
        for _ in range(MAX_TURNS):
            message = answer(client, model, messages)
            messages.append(message)
            print(message["content"], flush=True)
            if not message.get("tool_calls"):
                return 0
            for call in message["tool_calls"]:
                line = json.loads(call["function"]["arguments"])["line"]
                done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
                print(f"$ {line}\n{done.stdout}{done.stderr}", flush=True)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
    return 1


if __name__ == "__main__":
    sys.exit(main())
