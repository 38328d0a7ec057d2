"""A user's own agent without tools and without a library: Thought, Action and Action Input as text (ReAct).

Usage: react_loop.py TASK [MODEL]; LLM_BASE_URL is its own variable for the server (with /v1).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from typing import Any

MAX_TURNS = 12
RULES = """You keep notes for the user. Use this format, and nothing after Action Input:

Thought: what you think
Action: the action to take, one of [shell]
Action Input: the shell command

You will then be given an Observation. When you are done, write:

Thought: I am done
Final Answer: what you did
"""


def answer(messages: list[dict[str, str]], model: str) -> str:
    """The text of one answer of the server."""
    body = json.dumps({"model": model, "messages": messages, "stop": ["Observation:"], "max_tokens": 400})
    request = urllib.request.Request(
        os.environ["LLM_BASE_URL"].rstrip("/") + "/chat/completions",
        body.encode(),
        {"content-type": "application/json", "authorization": "Bearer none"},
    )
    with urllib.request.urlopen(request, timeout=120) as got:
        said: Any = json.load(got)
    return said["choices"][0]["message"]["content"] or ""


def main() -> int:
    """Work until a final answer; 0 then, 1 where none comes."""
    task, model = sys.argv[1], (sys.argv[2:] or ["default"])[0]
    messages = [{"role": "system", "content": RULES}, {"role": "user", "content": f"Question: {task}"}]
    for _ in range(MAX_TURNS):
        text = answer(messages, model)
        print(text, flush=True)
        messages.append({"role": "assistant", "content": text})
        action = re.search(r"^Action: *shell *\nAction Input: *(.+)$", text, re.MULTILINE)
        if action:
            done = subprocess.run(action[1], shell=True, capture_output=True, text=True, check=False)
            messages.append({"role": "user", "content": f"Observation: {done.stdout}{done.stderr}"})
        elif "Final Answer:" in text:
            return 0
        else:
            messages.append({"role": "user", "content": "Observation: write an Action or a Final Answer."})
    return 1


if __name__ == "__main__":
    sys.exit(main())
