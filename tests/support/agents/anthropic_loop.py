"""A user's own agent on the anthropic library: Messages, its command given as a list of words.

Usage: anthropic_loop.py TASK [MODEL]; ANTHROPIC_BASE_URL and a key as the library reads them.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anthropic

MAX_TURNS = 12
TOOL: Any = {
    "name": "terminal",
    "description": 'Executes a program in the working folder, e.g. ["bash", "-c", "make test"].',
    "input_schema": {
        "type": "object",
        "properties": {"argv": {"type": "array", "items": {"type": "string"}}},
        "required": ["argv"],
    },
}


def main() -> int:
    """Work until the model answers without a call; 0 then, 1 where it never does."""
    task, model = sys.argv[1], (sys.argv[2:] or ["default"])[0]
    messages: list[Any] = [{"role": "user", "content": task}]
    with anthropic.Anthropic(max_retries=0) as client:
        for _ in range(MAX_TURNS):
            said = client.messages.create(
                model=model, max_tokens=512, messages=messages, tools=[TOOL], system="You keep notes for the user."
            )
            results = []
            for block in said.content:
                if block.type == "text":
                    print(block.text, flush=True)
                elif block.type == "tool_use":
                    words: Any = block.input
                    done = subprocess.run(words["argv"], capture_output=True, text=True, check=False)
                    text = done.stdout + done.stderr
                    print(f"$ {words['argv']}\n{text}", flush=True)
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": text})
            if not results:
                return 0
            messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
            messages.append({"role": "user", "content": results})
    return 1


if __name__ == "__main__":
    sys.exit(main())
