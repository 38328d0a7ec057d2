"""A user's own agent on the OpenAI Agents SDK (Responses API); needs openai-agents.

Usage: openai_agents_program.py TASK [MODEL]; OPENAI_BASE_URL and OPENAI_API_KEY as the library reads them.
"""

from __future__ import annotations

import subprocess
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled


@function_tool
def execute_command(command: str, timeout_seconds: int) -> str:
    """Execute a command in a shell.

    Args:
        command: the command line
        timeout_seconds: how long it may take
    """
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    return done.stdout + done.stderr


def main() -> int:
    """Run the agent once and print its final output."""
    set_tracing_disabled(True)
    agent = Agent(
        name="notes",
        instructions="You keep notes for the user.",
        model=(sys.argv[2:] or ["default"])[0],
        tools=[execute_command],
    )
    print(Runner.run_sync(agent, sys.argv[1], max_turns=12).final_output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
