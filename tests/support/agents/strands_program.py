"""A user's own agent on Strands Agents (Chat Completions, streamed); needs strands-agents[openai].

Usage: strands_program.py TASK [MODEL]; OPENAI_BASE_URL and OPENAI_API_KEY as the openai library reads them.
"""

from __future__ import annotations

import os
import subprocess
import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def sh(script: str) -> str:
    """Run a POSIX shell script.

    Args:
        script: the script's text
    """
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def main() -> int:
    """Run the agent once; it prints while it works."""
    model = OpenAIModel(
        client_args={"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "none"},
        model_id=(sys.argv[2:] or ["default"])[0],
    )
    Agent(model=model, tools=[sh], system_prompt="You keep notes for the user.")(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
