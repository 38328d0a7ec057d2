"""A user's own agent on Qwen-Agent, which writes its tools into the prompt itself.

Needs qwen-agent, numpy, soundfile, tqdm, python-dateutil.

Usage: qwen_agent_program.py TASK [MODEL]; OPENAI_BASE_URL for the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from qwen_agent.agents import Assistant
from qwen_agent.tools.base import BaseTool, register_tool


@register_tool("run_bash")
class RunBash(BaseTool):
    """Run a bash command and return what it prints."""

    description = "Run a bash command and return what it prints."
    parameters = {  # noqa: RUF012 (as the library wants it)
        "type": "object",
        "properties": {"command": {"type": "string", "description": "the command line"}},
        "required": ["command"],
    }

    def call(self, params: str | dict[str, Any], **_: Any) -> str:
        """Run it."""
        given = json.loads(params) if isinstance(params, str) else params
        done = subprocess.run(["bash", "-c", given["command"]], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


def main() -> int:
    """Run the agent once and print its last message."""
    server = {
        "model": (sys.argv[2:] or ["default"])[0],
        "model_server": os.environ["OPENAI_BASE_URL"],
        "api_key": "none",
    }
    states = list(Assistant(llm=server, function_list=["run_bash"]).run([{"role": "user", "content": sys.argv[1]}]))
    print(states[-1][-1]["content"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
