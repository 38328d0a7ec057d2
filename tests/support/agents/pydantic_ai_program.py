"""A user's own agent on pydantic-ai (Chat Completions); needs pydantic-ai-slim[openai].

Usage: pydantic_ai_program.py TASK [MODEL]; OPENAI_BASE_URL and OPENAI_API_KEY as the library reads them.
"""

from __future__ import annotations

import subprocess
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(OpenAIChatModel((sys.argv[2:] or ["default"])[0]), instructions="You keep notes for the user.")


@agent.tool_plain
def bash(cmd: str, background: bool) -> str:
    """Run a bash command.

    Args:
        cmd: the command line
        background: whether to leave it running
    """
    done = subprocess.run(["bash", "-c", cmd], capture_output=True, text=True, check=False)
    return f"exit {done.returncode}, background {background}\n{done.stdout}{done.stderr}"


if __name__ == "__main__":
    print(agent.run_sync(sys.argv[1]).output)
