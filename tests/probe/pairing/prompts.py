"""Prompts of agents without tools, in the styles of real ones: what each explains and what must be learned."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from stacks.dialects import read_request
from stacks.turn import CanonicalRequest


@dataclass(frozen=True)
class Prompt:
    """``system`` explains the protocol; ``kind`` is the speech's; ``writes`` stand in the writing turn, ``ends`` in the
    last one."""

    name: str
    system: str
    kind: str
    writes: tuple[str, ...]
    ends: tuple[str, ...] = ()
    tool: str = ""
    examples: tuple[tuple[str, str], ...] = field(default_factory=tuple)


def prompt_request(system: str, *examples: tuple[str, str]) -> CanonicalRequest:
    """A chat request with that system prompt, further messages, and a task."""
    messages = [("system", system), *examples, ("user", "Please do the task.")]
    body = {"model": "m", "messages": [{"role": role, "content": content} for role, content in messages]}
    return read_request("POST", "/v1/chat/completions", json.dumps(body).encode())


OWN_FENCE = """You work on a computer through one kind of block. Answer with your thoughts and exactly one block:

```acme_bash_command
the command
```

Each block is executed in a fresh subshell and you are shown what it prints. Some commands that help:

```bash
sed -n '1,20p' notes.txt
```
```bash
grep -rn word .
```
When the work is done, finish by issuing the command `echo ALL_WORK_IS_DONE_NOW` and nothing else.
"""
PLAIN_FENCE = """You are a helper in a terminal. To run something, write it in a fenced block, like so:

```bash
ls -la
```

Commands in such blocks are executed at once and their output comes back to you. Stop writing blocks when you are done.
"""
TOLD_FENCE = """You reach any goal by executing code on the user's machine. To execute code, write a markdown code
block and name the language after the backticks. Languages: python, shell, javascript.
"""
TAGGED = """Put one shell command between tags, it is executed and the output shown to you:
<run_shell>
ls
</run_shell>
End the session by running the command `submit` when finished.
"""
CLINE = """TOOL USE

You use one tool a message, and its result comes in the next one. Tools are written as XML tags:

<tool_name>
<parameter_name>value</parameter_name>
</tool_name>

# Tools

## execute_command
Description: Request to run a CLI command on the system.
Parameters:
- command: (required) The command line to run.
- requires_approval: (required) Whether the user must say yes first, true or false.
- folder: (optional) Where to run it.
Usage:
<execute_command>
<command>Your command here</command>
<requires_approval>true or false</requires_approval>
<folder>optional</folder>
</execute_command>

## read_file
Description: Reads a file.
Parameters:
- path: (required) The path of the file.
Usage:
<read_file>
<path>File path here</path>
</read_file>

## replace_in_file
Description: Replaces sections of a file.
Parameters:
- path: (required) The path.
- diff: (required) Blocks in this form:
------- SEARCH
[old]
=======
[new]
+++++++ REPLACE
Usage:
<replace_in_file>
<path>File path here</path>
<diff>Blocks here</diff>
</replace_in_file>

## attempt_completion
Description: Shows the result of the task to the user when it is finished.
Parameters:
- result: (required) The result.
Usage:
<attempt_completion>
<result>
Your final result here
</result>
</attempt_completion>
"""
_SIGNATURES = "\n".join(
    json.dumps({"type": "function", "function": {"name": name, "description": about, "parameters": parameters}})
    for name, about, parameters in (
        ("doc_search", "Searches documents.", {"type": "object", "properties": {"query": {"type": "string"}}}),
        (
            "sandbox_exec",
            "Executes a bash command in the sandbox.",
            {
                "type": "object",
                "properties": {"command": {"type": "string"}, "wait": {"type": "boolean"}},
                "required": ["command", "wait"],
            },
        ),
    )
)
HERMES = f"""# Tools
These functions are there for you:
<tools>
{_SIGNATURES}
</tools>
For a call, return one JSON object between tags:
<tool_call>
{{"name": <name>, "arguments": <object>}}
</tool_call>
"""
STARS = """你可以使用以下工具：

### doc_search

doc_search: 搜索文档 输入参数：{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}

### run_cmd

run_cmd: 在终端中执行命令 输入参数：{"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}

格式：
✿FUNCTION✿: 工具名称
✿ARGS✿: 工具输入
✿RESULT✿: 工具结果
"""
REACT = """Answer as well as you can. You have these tools:

search: Looks things up on the web.
terminal: Run shell commands on this machine.

Use this form:

Question: what you must answer
Thought: what you think
Action: the action, one of [search, terminal]
Action Input: what goes into the action
Observation: what came of it
Thought: I now know the final answer
Final Answer: the answer
"""
CREW = """You are Operator. You ONLY have access to these tools:

Tool Name: Read a file
Tool Arguments: {'file_path': {'description': 'Path', 'type': 'str'}}
Tool Description: Reads a file's content.
Tool Name: run_shell
Tool Arguments: {'command': {'description': 'The shell command to run', 'type': 'str'}}
Tool Description: Executes a command in the shell.

Use this form:
```
Thought: what to do
Action: the action, only one name of [Read a file, run_shell]
Action Input: the input, a JSON object with double quotes
Observation: the result
```
Once all is gathered:
```
Thought: I now know the final answer
Final Answer: the answer
```
"""
STRUCTURED = """Respond helpfully with these tools:

terminal: Run shell commands., args: {"commands": {"title": "Commands", "type": "string"}}

Use a JSON blob to name a tool by an action key and its input by an action_input key. One action per $JSON_BLOB:

```
{
  "action": "$TOOL_NAME",
  "action_input": "$INPUT"
}
```
"""
AUTONOMOUS = """You decide alone. Commands:
1. browse_website: Opens a page, args: "url": "<url>"
2. execute_shell: Execute a Shell Command, args: "command_line": "<command_line>"
3. task_complete: Use this when all goals are met, args: "reason": "<reason>"

Answer only in JSON of this form:
{
    "thoughts": {"text": "thought", "reasoning": "why", "plan": "- a list"},
    "command": {"name": "command name", "args": {"arg name": "value"}}
}
"""
BARE_JSON = """Every answer is a JSON object: {"thought": "what you think", "command": "a bash command"}. It is executed
by bash and the output comes back. Finish the task with `exit` as command.
"""
CODE_AGENT = """Solve the task with code. In each step write a thought, then Python opened with
'<code>' and closed with '</code>'.

Thought: I add two numbers.
<code>
print(1 + 2)
</code>
Observation: 3

<code>
final_answer(3)
</code>
You can use imports in your code, but only from the following list of modules: ['math', 'pathlib', 're']
"""
PY_FENCE = """Write Python in a fenced block; it is executed and what it prints is shown to you:
```python
print(1)
```
"""
JSON_CODE = """You generate a JSON object with a thought and code in Python. Example:
{"thought": "I add.", "code": "print(1 + 2)"}
{"thought": "I answer.", "code": "final_answer(3)"}
"""
EDITS = """Describe each change with a SEARCH/REPLACE block. Suggest shell commands in ```bash blocks, they are not run
for you unless the user agrees to execute them.

app/main.py
```python
<<<<<<< SEARCH
old = 1
=======
old = 2
>>>>>>> REPLACE
```
"""
EDITS_INSIDE = EDITS.replace("app/main.py\n```python\n", "~~~~python\napp/main.py\n").replace("\n```\n", "\n~~~~\n")
UDIFF = """Return edits like a unified diff.

```diff
--- app/main.py
+++ app/main.py
@@ ... @@
-old = 1
+old = 2
```
"""
PATCH = """Answer with a patch between these lines:
*** Begin Patch
*** Add File: path/new.py
+print(1)
*** End Patch
"""
WHOLE = """To change a file, output a file listing with the entire content of the file:

path/name.js
````
// all of it
````
"""

RUN_FENCE = """You operate a computer. To execute something, answer with exactly one fenced block marked `run`, like so:

```run
<shell commands here>
```

You will be shown the output. When the task is complete, answer with a line that holds only DONE.
"""
TYPED_XML = """# Tools
Write one tool as XML in each message.

## shell_exec
Description: run a command in the user's shell.
Parameters:
- cmdline: (required) The command.
- background: (required) true or false
- risk: (required) one of low, medium, high
- seconds: (required) how long it may take
Usage:
<shell_exec>
<cmdline>your command here</cmdline>
<background>false</background>
<risk>medium</risk>
<seconds>30</seconds>
</shell_exec>

## finish
Description: present the result when done.
Parameters:
- summary: (required) what you did
Usage:
<finish>
<summary>the summary</summary>
</finish>
"""
SHOWN_JSON = """Reply with a single JSON object and nothing else:
{"thought": "<what you think>", "action": "shell", "args": {"command": "<shell command>", "background": false}}
or, when the task is done:
{"thought": "<what you think>", "action": "finish", "args": {"message": "<result>"}}
"""
FLAT_JSON = """You answer in JSON, one object each time. To have a command executed by the shell:
{"type": "run", "command": "ls -l"}
When everything is done:
{"type": "done", "message": "what you did"}
"""
LINES = """You are at a terminal. To execute a shell command write one line that begins with RUN, and nothing after it:
RUN: <the command>
You get what it prints. Once the task is finished, write:
FINAL ANSWER: <what you did>
"""
TAGGED_END = """Put one shell command between tags, it is executed and the output shown to you:
<exec>
ls
</exec>
When you are finished reply with <task_done/> alone.
"""
SAID_END = PLAIN_FENCE + "Reply TERMINATE in the end when everything is done.\n"

PROMPTS = [
    Prompt(
        "own fence",
        OWN_FENCE,
        "fence.shell",
        ("```acme_bash_command\necho nonce-7 > note.txt; echo '[''[k3]]'\n```",),
        ("```acme_bash_command\necho ALL_WORK_IS_DONE_NOW\n```",),
        "acme_bash_command",
    ),
    Prompt("plain fence", PLAIN_FENCE, "fence.shell", ("```bash\necho nonce-7",), ("The note is",), "bash"),
    Prompt("told fence", TOLD_FENCE, "fence.shell", ("```shell\necho nonce-7",), (), "shell"),
    Prompt(
        "tag", TAGGED, "tag.shell", ("<run_shell>\necho nonce-7",), ("<run_shell>\nsubmit\n</run_shell>",), "run_shell"
    ),
    Prompt(
        "xml tools",
        CLINE,
        "xml.shell",
        ("<execute_command>\n", "<command>echo nonce-7 > note.txt; echo '[''[k3]]'</command>\n"),
        ("<attempt_completion>\n<result>The note is written and checked.</result>\n</attempt_completion>",),
        "execute_command",
    ),
    Prompt(
        "hermes list",
        HERMES,
        "format.shell",
        ('<tool_call>\n{"name": "sandbox_exec", "arguments": {"command": "echo nonce-7', '"wait": true'),
        (),
        "sandbox_exec",
    ),
    Prompt("stars", STARS, "format.shell", ('✿FUNCTION✿: run_cmd\n✿ARGS✿: {"cmd": "echo nonce-7',), (), "run_cmd"),
    Prompt(
        "react",
        REACT,
        "react.shell",
        ("Action: terminal\nAction Input: echo nonce-7 > note.txt",),
        ("Final Answer: The note",),
        "terminal",
    ),
    Prompt(
        "crew",
        CREW,
        "react.shell",
        ('Action: run_shell\nAction Input: {"command": "echo nonce-7',),
        ("Final Answer: The note",),
        "run_shell",
    ),
    Prompt(
        "structured chat",
        STRUCTURED,
        "json.shell",
        ('```\n{"action": "terminal", "action_input": {"commands": "echo nonce-7',),
        (),
        "terminal",
    ),
    Prompt(
        "autonomous",
        AUTONOMOUS,
        "json.shell",
        ('"command": {"name": "execute_shell", "args": {"command_line": "echo nonce-7',),
        ('"name": "task_complete", "args": {"reason": "The note is written and checked."}',),
        "execute_shell",
    ),
    Prompt("bare json", BARE_JSON, "json.shell", ('"command": "echo nonce-7',), ('"command": "exit"',)),
    Prompt(
        "code agent",
        CODE_AGENT,
        "block.python",
        ("<code>\nimport pathlib\npathlib.Path('note.txt').write_text('nonce-7')\nprint('[' + '[k3]]')\n</code>",),
        ("<code>\nfinal_answer('The note is written and checked.')\n</code>",),
        "python",
    ),
    Prompt(
        "python fence", PY_FENCE, "block.python", ("```python\nwith open('note.txt', 'w')",), ("The note is",), "python"
    ),
    Prompt(
        "json code", JSON_CODE, "json.python", ("\"code\": \"with open('note.txt', 'w')",), ('"code": "final_answer(',)
    ),
    Prompt(
        "edits",
        EDITS,
        "edit.search_replace",
        ("note.txt\n```text\n<<<<<<< SEARCH\n=======\nnonce-7\n>>>>>>> REPLACE\n```",),
    ),
    Prompt(
        "edits inside", EDITS_INSIDE, "edit.search_replace", ("~~~~text\nnote.txt\n<<<<<<< SEARCH\n=======\nnonce-7",)
    ),
    Prompt("udiff", UDIFF, "edit.udiff", ("```diff\n--- /dev/null\n+++ note.txt\n@@ ... @@\n+nonce-7\n```",)),
    Prompt("patch", PATCH, "edit.patch", ("*** Begin Patch\n*** Add File: note.txt\n+nonce-7\n*** End Patch",)),
    Prompt(
        "fence marked run",
        RUN_FENCE,
        "fence.shell",
        ("```run\necho nonce-7 > note.txt; echo '[''[k3]]'\n```",),
        ("checked.\nDONE",),
        "run",
    ),
    Prompt(
        "xml with typed values",
        TYPED_XML,
        "xml.shell",
        ("<background>false</background>", "<risk>low</risk>", "<seconds>60</seconds>"),
        ("<finish>\n<summary>The note",),
        "shell_exec",
    ),
    Prompt(
        "json shown as calls only",
        SHOWN_JSON,
        "json.shell",
        ('"action": "shell", "args": {"command": "echo nonce-7', '"background": false'),
        ('"action": "finish", "args": {"message": "The note is written and checked."}',),
        "shell",
    ),
    Prompt(
        "flat json",
        FLAT_JSON,
        "json.shell",
        ('{"type": "run", "command": "echo nonce-7',),
        ('{"type": "done", "message": "The note is written and checked."}',),
    ),
    Prompt("lines", LINES, "line.shell", ("\nRUN: echo nonce-7 > note.txt; echo",), ("FINAL ANSWER: The note",), "RUN"),
    Prompt("tag with an end", TAGGED_END, "tag.shell", ("<exec>\necho nonce-7",), ("<task_done/>",), "exec"),
    Prompt("fence with a word", SAID_END, "fence.shell", ("```bash\necho nonce-7",), ("checked.\nTERMINATE",), "bash"),
    Prompt("whole", WHOLE, "edit.whole", ("note.txt\n````\nnonce-7\n````",)),
]

CHATTY = [
    "You are a kind helper. Answer briefly.",
    "Explain code. Example of an answer:\n```python\nprint(1)\n```\nKeep it short.",
    'Make a title for this chat, at most five words. Answer in JSON: {"title": "..."}',
    "Commands that the user runs are executed in a terminal; you only explain them.\nShell: bash\nTerminal: xterm",
    "Explain how to execute things in a shell.\nNote: keep it short.\nExample: ls",
    'Classify the message. Answer in JSON: {"type": "question", "text": "..."} and say DONE when finished.',
    "Describe <b>bold</b> text and <command>ls</command> in HTML.",
]
"""Prompts that explain no way to run anything."""
