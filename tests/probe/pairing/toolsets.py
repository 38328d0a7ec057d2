"""Tool sets of agents nobody has seen, in the styles of real frameworks: what each offers and what must be found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stacks.dialects import read_request
from stacks.turn import CanonicalRequest

TEXT = {"type": "string"}


@dataclass(frozen=True)
class ToolSet:
    """``tools`` as ``(name, description, schema)``, or as they stand on the wire; ``found`` is the tool to take,
    ``place`` the way to the command, ``kind`` the speech's."""

    name: str
    tools: list[Any]
    found: str
    place: str
    kind: str = "call.shell"
    finish: str = ""


def request_of(tools: Sequence[Any], dialect: str = "") -> CanonicalRequest:
    """The request that offers them; tools of the Responses API as they stand there, any other in ``dialect``."""
    typed = any(isinstance(tool, dict) for tool in tools)
    dialect = dialect or ("/v1/responses" if typed else "/v1/chat/completions")
    body: dict[str, Any] = {"model": "m", "tools": [_on_wire(tool, dialect) for tool in tools]}
    body |= {"input": "Hello."} if "responses" in dialect else {"messages": [{"role": "user", "content": "Hello."}]}
    return read_request("POST", dialect, json.dumps(body).encode())


def _on_wire(tool: Any, dialect: str) -> dict[str, Any]:
    if isinstance(tool, dict):
        return tool
    name, description, parameters = tool
    if "messages" in dialect:
        return {"name": name, "description": description, "input_schema": parameters}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", **function} if "responses" in dialect else {"type": "function", "function": function}


def schema(required: str = "", /, **properties: Any) -> dict[str, Any]:
    """An object schema; a text as property stands for a string described so."""
    made = {
        key: {**TEXT, "description": value} if isinstance(value, str) else value for key, value in properties.items()
    }
    return {"type": "object", "properties": made, "required": required.split()}


def either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


FILES = [
    ("read_file", "Reads a file.", schema("path", path="Path of the file")),
    ("list_files", "Lists a folder.", schema("path", path="Folder")),
    ("search_files", "Searches files by a regular expression.", schema("path regex", path="Folder", regex="Pattern")),
    ("write_file", "Writes a file.", schema("path content", path="Path", content="The whole content")),
]
NEAR = [
    ("search_commands", "Searches the command history.", schema("query", query="What to look for")),
    ("kill_shell", "Kills a running background shell by its id.", schema("shell_id", shell_id="Id of the shell")),
    ("bash_output", "Returns output of a background bash shell.", schema("bash_id", bash_id="Id", filter="Regex")),
    ("write_stdin", "Writes to a running session.", schema("session_id", session_id={"type": "number"}, chars="Text")),
    ("explain_command", "Explains what a shell command does.", schema("command", command="The shell command")),
    ("command_help", "Describes a shell command. It is not executed.", schema("command", command="A command")),
    (
        "browser",
        "Drives a web browser.",
        schema("action", action={**TEXT, "enum": ["launch", "click", "type", "close"]}, command="Raw CDP command"),
    ),
    (
        "run_vscode_command",
        "Runs a command of the editor.",
        schema("commandId", commandId="Id", args={"type": "array"}),
    ),
    (
        "SlashCommand",
        "Runs a slash command of the user.",
        schema("command", command="The slash command, with its words"),
    ),
    ("get_terminal_output", "Gets the output of a terminal.", schema("id", id="Terminal id")),
    ("remember_command", "Remembers a command that worked.", schema("command", command="The command")),
    ("run_sql", "Runs a SQL command.", schema("query", query="The SQL")),
    ("monitor", "", schema("command", command="", description="")),
    (
        "str_replace_based_edit_tool",
        "Views and edits files.",
        schema(
            "command path", command={**TEXT, "enum": ["view", "create", "str_replace"]}, path="Path", file_text="Text"
        ),
    ),
    ("todo_write", "Keeps the list of things to do.", schema("todos", todos={"type": "array", "items": TEXT})),
    (
        "process",
        "Manages processes.",
        schema("action", action={**TEXT, "enum": ["list", "kill", "log"]}, command="Filter"),
    ),
]
"""Tools that look as if they ran commands."""

SHELLS = [
    ToolSet(
        "plain", [("bash", "Execute a bash command", schema("command", command="The bash command"))], "bash", "command"
    ),
    ToolSet(
        "claude-like",
        [
            *NEAR,
            (
                "Bash",
                "Executes a given bash command in a persistent shell session. Do not run interactive programs.",
                schema(
                    "command",
                    command="The command to execute",
                    timeout={"type": "number"},
                    description="What it does in 5-10 words",
                    run_in_background={"type": "boolean"},
                ),
            ),
            ("KillShell", "Kills a shell.", schema("shell_id", shell_id="The id")),
            ("Task", "Starts another agent.", schema("prompt description", prompt="Task", description="Short")),
            ("ExitPlanMode", "Leaves the plan mode.", schema("plan", plan="The plan")),
        ],
        "Bash",
        "command",
    ),
    ToolSet(
        "openhands-like",
        [
            (
                "execute_bash",
                "Execute a bash command in the terminal within a persistent shell session.",
                schema(
                    "command security_risk",
                    command="The bash command to execute. Can be empty string to view additional logs.",
                    is_input={**TEXT, "enum": ["true", "false"]},
                    timeout={"type": "number"},
                    security_risk={**TEXT, "enum": ["HIGH", "MEDIUM", "LOW"]},
                ),
            ),
            ("execute_ipython_cell", "Run a cell of Python.", schema("code", code="The Python code")),
            ("think", "Log a thought.", schema("thought", thought="The thought")),
            ("finish", "Signals that the task is done.", schema("message", message="Last message")),
        ],
        "execute_bash",
        "command",
        finish="finish",
    ),
    ToolSet(
        "goose-like",
        [
            ("developer__shell", "Execute a command in the shell.", schema("command", command=TEXT)),
            ("developer__text_editor", "Edit text files.", schema("command path", command=TEXT, path=TEXT)),
            ("platform__search_available_extensions", "Searches for extensions.", schema()),
        ],
        "developer__shell",
        "command",
    ),
    ToolSet(
        "cline-like",
        [
            *FILES,
            (
                "execute_command",
                "Request to execute a CLI command on the system.",
                schema("command requires_approval", command="The CLI command", requires_approval={"type": "boolean"}),
            ),
            (
                "attempt_completion",
                "Presents the result of the task.",
                schema("result", result="Result", command="Demo"),
            ),
            ("ask_followup_question", "Asks the user.", schema("question", question="The question")),
        ],
        "execute_command",
        "command",
        finish="attempt_completion",
    ),
    ToolSet(
        "gemini-like",
        [*FILES, ("run_shell_command", "", schema("command", command="", description="", directory=""))],
        "run_shell_command",
        "command",
    ),
    ToolSet(
        "qwen-like",
        [
            ("run_shell_command", "", schema("command is_background", command="", is_background={"type": "boolean"})),
            ("monitor", "", schema("command", command="", idle_timeout_ms={"type": "number"})),
        ],
        "run_shell_command",
        "command",
    ),
    ToolSet(
        "argv",
        [
            (
                "shell",
                "Runs a shell command, and returns its output.",
                schema(
                    "command", command={"type": "array", "items": TEXT}, workdir=TEXT, timeout_ms={"type": "number"}
                ),
            ),
            ("update_plan", "Updates the plan.", schema("plan", plan={"type": "array", "items": TEXT})),
        ],
        "shell",
        "command",
    ),
    ToolSet(
        "langchain-like",
        [
            (
                "terminal",
                "Run shell commands on this Linux machine.",
                schema("commands", commands=either({"type": "array", "items": TEXT}, TEXT)),
            )
        ],
        "terminal",
        "commands",
    ),
    ToolSet(
        "legacy-langchain",
        [("terminal", "Run shell commands on this machine.", schema("__arg1", __arg1=TEXT))],
        "terminal",
        "__arg1",
    ),
    ToolSet(
        "list-of-commands",
        [("ExecBatch", "Executes commands in order.", schema("commands", commands={"type": "array", "items": TEXT}))],
        "ExecBatch",
        "commands",
    ),
    ToolSet(
        "list-of-objects",
        [
            (
                "run_commands",
                "Runs several commands in a shell.",
                schema(
                    "steps",
                    steps={
                        "type": "array",
                        "minItems": 1,
                        "items": schema(
                            "command timeout", command="Command", timeout={"type": "integer", "maximum": 30}
                        ),
                    },
                ),
            )
        ],
        "run_commands",
        "steps.command",
    ),
    ToolSet(
        "nested-with-references",
        [
            (
                "terminal_exec",
                "Executes a shell command.",
                {
                    "type": "object",
                    "$defs": {
                        "Request": schema("cmd cwd", cmd="Command line", cwd={"$ref": "#/$defs/Folder"}),
                        "Folder": {"type": "string", "minLength": 1, "description": "Working folder"},
                    },
                    "properties": {"request": {"$ref": "#/$defs/Request"}},
                    "required": ["request"],
                },
            )
        ],
        "terminal_exec",
        "request.cmd",
    ),
    ToolSet(
        "action-and-command",
        [
            (
                "process_manager",
                "Starts, polls and kills processes of the machine's shell.",
                schema(
                    "action command",
                    action={**TEXT, "enum": ["list", "kill", "start", "poll"]},
                    command="The shell command to start",
                ),
            )
        ],
        "process_manager",
        "command",
    ),
    ToolSet(
        "one-of-actions",
        [
            (
                "terminal",
                "Uses the terminal.",
                {
                    "type": "object",
                    "oneOf": [
                        schema("op session", op={"const": "kill"}, session="Id"),
                        schema("op command", op={"const": "run"}, command="The command"),
                    ],
                },
            )
        ],
        "terminal",
        "command",
    ),
    ToolSet(
        "interpreter-like",
        [
            (
                "execute",
                "Executes code on the user's machine.",
                schema("language code", language={**TEXT, "enum": ["python", "shell", "javascript"]}, code="The code"),
            )
        ],
        "execute",
        "code",
    ),
    ToolSet(
        "copilot-like",
        [
            *NEAR,
            (
                "run_in_terminal",
                "Runs a shell command in a terminal.",
                schema(
                    "command explanation isBackground",
                    command="The command",
                    explanation="One sentence",
                    isBackground={"type": "boolean"},
                ),
            ),
        ],
        "run_in_terminal",
        "command",
    ),
    ToolSet(
        "keystrokes",
        [
            (
                "terminal_keys",
                "Types into the terminal.",
                schema(
                    "batch",
                    batch={
                        "type": "array",
                        "items": schema(
                            "keystrokes seconds", keystrokes="Keys of a shell command", seconds={"type": "number"}
                        ),
                    },
                ),
            )
        ],
        "terminal_keys",
        "batch.keystrokes",
    ),
    ToolSet(
        "free-language",
        [
            (
                "execute_code_block",
                "Executes a block in the container.",
                schema("language code", language="Its language, such as python or sh", code="The code"),
            )
        ],
        "execute_code_block",
        "code",
    ),
    ToolSet(
        "vector-without-words",
        [("server1.exec", None, schema("argv", argv={"type": "array", "items": TEXT}))],
        "server1.exec",
        "argv",
    ),
    ToolSet(
        "desktop-mcp",
        [
            ("mcp__desktop-commander__kill_process", "Terminates a process.", schema("pid", pid={"type": "number"})),
            (
                "mcp__desktop-commander__start_process",
                "Start a new terminal process with intelligent state detection.",
                schema("command timeout_ms", command=TEXT, timeout_ms={"type": "number"}, shell=TEXT),
            ),
            ("mcp__desktop-commander__read_process_output", "Reads output.", schema("pid", pid={"type": "number"})),
        ],
        "mcp__desktop-commander__start_process",
        "command",
    ),
    ToolSet(
        "chinese",
        [
            ("查找文件", "在工作目录中查找文件", schema("模式", 模式="通配符")),
            (
                "执行命令",
                "在终端中执行一条命令并返回输出",
                schema("命令 原因", 命令="要执行的命令", 原因="为什么要执行"),
            ),
            ("解释", "解释一段代码", schema("代码", 代码="要解释的代码")),
        ],
        "执行命令",
        "命令",
    ),
    ToolSet(
        "chinese-described",
        [
            ("tool_7", "运行 shell 命令，返回标准输出", schema("arg", arg="要运行的命令")),
            ("tool_8", "读取文件内容", schema("arg", arg="文件路径")),
        ],
        "tool_7",
        "arg",
    ),
    ToolSet(
        "german",
        [
            ("datei_lesen", "Liest eine Datei.", schema("pfad", pfad="Pfad der Datei")),
            ("ausfuehren", "F\u00fchrt einen Befehl in der Shell aus.", schema("befehl", befehl="Der Befehl")),
        ],
        "ausfuehren",
        "befehl",
    ),
    ToolSet(
        "russian",
        [
            ("terminal_run", "Выполняет команду в терминале.", schema("команда", команда="Команда оболочки")),
        ],
        "terminal_run",
        "команда",
    ),
    ToolSet(
        "no-descriptions",
        [
            ("a", None, schema("x", x=TEXT)),
            ("execCommand", None, schema("cmd", cmd=TEXT)),
            ("readFile", None, schema("path", path=TEXT)),
        ],
        "execCommand",
        "cmd",
    ),
    ToolSet(
        "no-required-list",
        [
            ("shell_exec", "Runs it.", {"type": "object", "properties": {"command": TEXT, "cwd": TEXT}}),
        ],
        "shell_exec",
        "command",
    ),
    ToolSet(
        "strict-nullable",
        [
            (
                "exec",
                "Runs a command in the sandbox's shell.",
                {
                    **schema(
                        "cmd workdir timeout env",
                        cmd=TEXT,
                        workdir={"type": ["string", "null"]},
                        timeout=either({"type": "integer", "minimum": 1000}, {"type": "null"}),
                        env=either({"type": "object", "additionalProperties": TEXT}, {"type": "null"}),
                    ),
                    "additionalProperties": False,
                },
            )
        ],
        "exec",
        "cmd",
    ),
    ToolSet(
        "augment-like",
        [
            (
                "launch-process",
                "Launch a new process with a shell command.",
                schema(
                    "command wait max_wait_seconds cwd",
                    command="The shell command to execute.",
                    wait={"type": "boolean"},
                    max_wait_seconds={"type": "number", "exclusiveMinimum": 0, "maximum": 600},
                    cwd="Required parameter. The absolute path to the working directory.",
                ),
            ),
            ("kill-process", "Kill a process.", schema("terminal_id", terminal_id={"type": "integer"})),
            (
                "write-process",
                "Write input.",
                schema("terminal_id input_text", terminal_id={"type": "integer"}, input_text=TEXT),
            ),
        ],
        "launch-process",
        "command",
    ),
    ToolSet(
        "swe-like",
        [
            (
                "bash",
                "runs the given command directly in bash",
                schema("command", command="The bash command to execute."),
            ),
            ("submit", "submits the current file", schema()),
        ],
        "bash",
        "command",
        finish="submit",
    ),
    ToolSet("anthropic-typed", [{"type": "bash_20250124", "name": "bash"}], "bash", "command"),
    ToolSet("local-shell-typed", [{"type": "local_shell"}], "local_shell", "command"),
    ToolSet("shell-typed", [{"type": "web_search"}, {"type": "shell"}], "shell", "commands"),
    ToolSet(
        "custom-typed",
        [
            {"type": "custom", "name": "shell_exec", "description": "Runs the text as a bash script in the workspace."},
        ],
        "shell_exec",
        "input",
    ),
    ToolSet(
        "namespaced",
        [
            {
                "type": "namespace",
                "name": "os",
                "tools": [
                    {"type": "function", "name": "kill", "parameters": schema("pid", pid={"type": "integer"})},
                    {
                        "type": "function",
                        "name": "exec_command",
                        "parameters": schema("cmd", cmd="Shell command to execute."),
                    },
                ],
            },
        ],
        "exec_command",
        "cmd",
    ),
    ToolSet(
        "patterned",
        [
            (
                "run_shell",
                "Runs a shell command.",
                schema(
                    "command ticket level",
                    command=TEXT,
                    ticket={**TEXT, "pattern": "^[A-Z]+-\\d+$", "default": "OPS-1"},
                    level={"type": "integer", "minimum": 3, "multipleOf": 5},
                ),
            ),
        ],
        "run_shell",
        "command",
    ),
]

OTHERS = [
    ToolSet(
        "python-only",
        [("python_interpreter", "Evaluates Python code.", schema("code", code="The Python code to run"))],
        "python_interpreter",
        "code",
        "call.python",
    ),
    ToolSet(
        "smol-toolcalling",
        [
            (
                "python_interpreter",
                "This is a tool that evaluates python code.",
                schema("code", code="The code to run"),
            ),
            ("final_answer", "Provides a final answer to the given problem.", schema("answer", answer={"type": "any"})),
        ],
        "python_interpreter",
        "code",
        "call.python",
        finish="final_answer",
    ),
    ToolSet(
        "letta-like",
        [
            (
                "run_code",
                "Run code in a sandbox.",
                schema(
                    "code language", code="The code", language={**TEXT, "enum": ["python", "js", "ts", "r", "java"]}
                ),
            ),
            ("conversation_search", "Searches prior messages.", schema("query", query="What")),
            ("send_message", "Sends a message to the human user.", schema("message", message="Contents")),
        ],
        "run_code",
        "code",
        "call.python",
        finish="send_message",
    ),
    ToolSet(
        "repl-like",
        [
            (
                "Python_REPL",
                "A Python shell. Use this to execute python commands. Input is a valid python command.",
                schema("query", query=TEXT),
            ),
        ],
        "Python_REPL",
        "query",
        "call.python",
    ),
    ToolSet(
        "jupyter-like",
        [
            ("notebook_execute_cell", "Runs a cell in the kernel.", schema("source", source="Source of the cell")),
        ],
        "notebook_execute_cell",
        "source",
        "call.python",
    ),
    ToolSet("files-only", [*FILES], "write_file", "content", "call.files"),
    ToolSet(
        "files-with-near-misses",
        [
            *NEAR,
            (
                "fs__read",
                "Read a text file. Must be an absolute path.",
                schema("file_path", file_path="The absolute path to the file"),
            ),
            (
                "fs__create",
                "Create a new file with the given text.",
                schema(
                    "file_path file_text overwrite",
                    file_path="The absolute path",
                    file_text="Text of the file",
                    overwrite={"type": "boolean"},
                ),
            ),
        ],
        "fs__create",
        "file_text",
        "call.files",
    ),
    ToolSet(
        "editor-tool-only",
        [
            (
                "str_replace_editor",
                "View, create and edit plain-text files.",
                schema(
                    "command path",
                    command={**TEXT, "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
                    path="Absolute path to file or directory",
                    file_text="Content of the file to be created",
                    old_str="Text to replace",
                    new_str="New text",
                ),
            ),
        ],
        "str_replace_editor",
        "file_text",
        "call.files",
    ),
]
