"""A user's own agent on the ollama library: the native API, ended by a tool of its own.

Usage: ollama_loop.py TASK [MODEL]; OLLAMA_HOST as the library reads it.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ollama

MAX_TURNS = 12


def shell(command: str) -> str:
    """Run a shell command.

    Args:
        command: the command line
    """
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def task_done(summary: str) -> str:
    """Say that the task is finished. Call this when everything is done.

    Args:
        summary: what was done, in one sentence
    """
    return summary


def main() -> int:
    """Work until the model calls task_done; 0 then, 1 where it never does."""
    task, model = sys.argv[1], (sys.argv[2:] or ["default"])[0]
    messages: list[Any] = [
        {"role": "system", "content": "You keep notes. When all is done call task_done."},
        {"role": "user", "content": task},
    ]
    client = ollama.Client()
    for _ in range(MAX_TURNS):
        message = client.chat(model=model, messages=messages, tools=[shell, task_done]).message
        messages.append(message)
        print(message.content or "", flush=True)
        for call in message.tool_calls or []:
            arguments: dict[str, Any] = dict(call.function.arguments)
            if call.function.name == "task_done":
                print(task_done(**arguments))
                return 0
            result = shell(**arguments)
            print(f"$ {arguments}\n{result}", flush=True)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
        if not message.tool_calls:
            messages.append({"role": "user", "content": "Go on, or call task_done."})
    return 1


if __name__ == "__main__":
    sys.exit(main())
