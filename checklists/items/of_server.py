"""C01 to C05, C18 and C19: what the server is, how it was started, which model it held, on which machine."""

from __future__ import annotations

import hashlib
import shlex

from checklists.items.answers import part, per_server, share
from checklists.items.material import Material, Server, said
from checklists.items.records import Filled, Link, Part
from results.manifest import Fact
from stacks.serving.launched import is_launch_of
from stacks.serving.reading import flag_value, has_flag
from stacks.stack_names import stack_name

TOOL_FLAGS = (
    "--jinja",
    "--no-jinja",
    "--chat-template",
    "--chat-template-file",
    "--chat-template-content-format",
    "--tool-call-parser",
    "--tool-parser-plugin",
    "--enable-auto-tool-choice",
    "--reasoning-parser",
    "--reasoning-format",
    "--reasoning-budget",
    "--skip-chat-parsing",
    "--use-default-chat-template",
    "--chat_format",
    "--chat-format",
    "--parse",
    "--quantization",
    "--generation-config",
    "--trust-remote-code",
)
"""Launch flags that decide on tools, of all stacks."""


def c01_stack(material: Material) -> Filled:
    """Stack and version are what is asked; the build is said where it is known."""
    return per_server("C01", material, [(server, _c01(material, server)) for server in material.used])


def _c01(material: Material, server: Server) -> Part:
    stack, version, build = server.stack, server.text("version"), server.text("build")
    known = " ".join(word for word in (stack, version) if word)
    if build:
        known = f"{known}, build: {build}" if known else f"build: {build}"
    if stack and version:
        told = "" if build else f" (build not known: {server.fact('build').unknown})"
        return part(server.name, "yes", known + told)
    if server.in_process:
        return part(server.name, "unknown", known, "the engine's version is not stated", _ask(material, "C01", server))
    why = server.fact("version" if stack else "stack").unknown or "not stated"
    return part(server.name, "unknown", known, why, _ask(material, "C01", server))


FROM_TEMPLATE = "made from the chat template"


def _ask(material: Material, item: str, server: Server) -> str:
    """The probe that tells it where the server can be asked; what the user states where it cannot."""
    if server.url.startswith("http") and not material.own_servers and item in ("C01", "C03", "C04", "C05"):
        model = f" --model {shlex.quote(server.model)}" if server.model else ""
        return f"stacktap diagnose {server.address}{model}"
    return material.stated_command(item, "...")


def c02_launch(material: Material) -> Filled:
    """The command line, or else both the parser and the template, must be known."""
    return per_server("C02", material, [(server, _c02(material, server)) for server in material.used])


def _c02(material: Material, server: Server) -> Part:
    flags, parser, template = server.fact("launch_flags"), server.text("parser"), server.text("chat_template_hash")
    if server.in_process:
        words = ["served inside of stacktap, no launch flags"]
    elif flags.unknown is None and isinstance(flags.value, list | tuple):
        command = [str(word) for word in flags.value]
        seen = is_launch_of(knows_stack(server), command)
        words = [_flag_words(command)] if seen else []
        flags = flags if seen else Fact(unknown="the process that listens there is not recognised as this server")
    else:
        words = [flags.value] if isinstance(flags.value, str) and flags.unknown is None else []
    stated = bool(words)
    without = bool(words) and "--no-jinja" in words[0]
    parser = "none, for want of the template engine (--no-jinja)" if without and parser == FROM_TEMPLATE else parser
    words += [f"parser in force: {parser}"] if parser else []
    words += [f"chat template SHA-256 {template[:16]}"] if template else []
    if stated or (parser and template):
        lacking = [] if template else [f"template hash not known: {server.fact('chat_template_hash').unknown}"]
        return part(server.name, "yes", "; ".join([*words, *lacking]))
    why = f"{flags.unknown}, and the server does not tell both its parser and its template"
    state_it = material.stated_command("C02", "the whole command line of the server")
    return part(server.name, "unknown", "; ".join(words), why, state_it)


def _flag_words(command: list[str]) -> str:
    found = []
    for name in TOOL_FLAGS:
        value = flag_value(command, name)
        if value is not None and (f"{name}={value}" in command or not value.startswith("-")):
            found.append(f"{name} {_brief(value)}")
        elif has_flag(command, name):
            found.append(name)
    return "launch flags on tools: " + (", ".join(found) or "none")


def _brief(value: str) -> str:
    """A flag's value; of a long one (a whole template) its hash."""
    if len(value) <= 80:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
    return f"({len(value)} characters, SHA-256 {digest[:16]})"


def c03_model(material: Material) -> Filled:
    """Both a digest and measured bits for each weight are asked."""
    return per_server("C03", material, [(server, _c03(material, server)) for server in material.used])


def _c03(material: Material, server: Server) -> Part:
    digest, bits, named = server.text("model_digest"), server.fact("bits_per_weight"), server.text("quantization")
    words = [server.model] if server.model else []
    words += [f"digest {digest}"] if digest else []
    words += [f"{_number(bits.value)} bits for each weight (measured)"] if bits.unknown is None else []
    words += [f"named {named}"] if named else []
    lacking = []
    if not digest:
        lacking.append(f"digest: {server.fact('model_digest').unknown}")
    if bits.unknown is not None:
        lacking.append(f"bits for each weight: {bits.unknown}")
    if not lacking:
        return part(server.name, "yes", ", ".join(words))
    command = f"sha256sum MODEL_FILE; {material.stated_command('C03', 'SHA-256 ..., ... bits for each weight')}"
    return part(server.name, "unknown", ", ".join(words), "; ".join(lacking), command)


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else said(value)


def c04_gate(material: Material) -> Filled:
    """From the recorded requests with tools: how many were taken, and the literal refusals."""
    links: list[Link] = []
    parts = []
    for server in material.used:
        traffic = server.traffic
        refused = sum(one.count for one in traffic.refusals.values())
        links += [traffic.accepted_first] if traffic.accepted_first else []
        links += [one.first for one in traffic.refusals.values()]
        parts.append((server, _c04(material, server, refused)))
    refusals = {
        server.name: {one.words: one.count for one in server.traffic.refusals.values()} for server in material.used
    }
    return per_server("C04", material, parts, links=links, refusals=refusals)


def _c04(material: Material, server: Server, refused: int) -> Part:
    traffic = server.traffic
    if not traffic.with_tools:
        why = "no request with tools was sent to it"
        return part(server.name, "unknown", "", why, _ask(material, "C04", server))
    literal = "; ".join(f"“{one.words}” ({one.outcome})" for one in traffic.refusals.values())
    taken = f"accepted in {share(traffic.tools_accepted, traffic.with_tools)} requests with tools"
    if refused and not traffic.tools_accepted:
        return part(
            server.name, "no", f"refused in {share(refused, traffic.with_tools)} requests with tools: {literal}"
        )
    if refused:
        return part(server.name, "yes", f"{taken}, refused in {refused}: {literal}")
    if traffic.tools_accepted:
        return part(server.name, "yes", taken)
    why = f"none of {traffic.with_tools} requests with tools was answered or refused by the server"
    if traffic.stopped_first:
        most, count = traffic.stopped_first.most_common(1)[0]
        why = f"{count} of {traffic.with_tools} requests with tools were refused for another reason first ({most})"
    return part(server.name, "unknown", "", why, _ask(material, "C04", server))


def c05_prompt(material: Material) -> Filled:
    """What the server rendered of a small request when the record began, or what the traffic shows."""
    parts, links = [], []
    for server in material.used:
        absent, fact = server.traffic.tools_absent, server.fact("tools_in_prompt")
        if absent is not None:
            links.append(absent)
            parts.append(
                (server, part(server.name, "no", "the tools of a recorded request did not come to the prompt"))
            )
        elif fact.unknown is not None:
            why = fact.unknown
            parts.append((server, part(server.name, "unknown", "", why, _ask(material, "C05", server))))
        elif fact.value is False:
            parts.append((server, part(server.name, "no", f"they do not ({fact.source})")))
        else:
            parts.append((server, part(server.name, "yes", f"they do ({fact.source or said(fact.value)})")))
    return per_server("C05", material, parts, links=links)


def c18_machine(material: Material) -> Filled:
    """Only of this machine: a server on another one is on hardware that nothing here can see."""
    return per_server("C18", material, [(server, _c18(material, server)) for server in material.used])


def _c18(material: Material, server: Server) -> Part:
    busy = server.traffic.at_once.most()
    load = f"requests under way at once: at most {busy}" if busy else "no request for an answer"
    command = material.stated_command("C18", "processor or graphics card, driver, compute library, system")
    if not server.local:
        return part(server.name, "unknown", load, "the server is on another host", command)
    words = [
        *(f"{label}{_amount(name, fact)}" for name, label, fact in _machine(server)),
        *(f"computes with {server.text(name)}" for name in ("kernel_backend",) if server.text(name)),
        load,
    ]
    lacking = [name for name in ("cpu_model", "system") if server.host(name).unknown is not None]
    backend = server.fact("kernel_backend")
    if not lacking and backend.unknown is None:
        return part(server.name, "yes", ", ".join(words))
    why = backend.unknown or f"this machine does not tell its {' and '.join(lacking).replace('_', ' ')}"
    return part(server.name, "unknown", ", ".join(words), why, command)


def _amount(name: str, fact: Fact) -> str:
    if name == "memory_bytes" and isinstance(fact.value, int):
        return f"{fact.value / (1 << 30):.1f} GiB"
    return said(fact.value)


def _machine(server: Server) -> list[tuple[str, str, Fact]]:
    named = (
        ("cpu_model", ""),
        ("cpus", "processors "),
        ("memory_bytes", "memory "),
        ("accelerator", "graphics card "),
        ("driver", "driver "),
        ("system", ""),
        ("distribution", ""),
        ("load", "load at the beginning "),
    )
    return [(name, label, server.host(name)) for name, label in named if server.host(name).unknown is None]


def c19_scope(material: Material) -> Filled:
    """The sentence, once stack, version and model are known."""
    parts = []
    for server in material.used:
        stack, version, model = server.stack, server.text("version"), server.model
        if stack and version and model:
            words = f"valid for {stack} {version} with {model}; whether tools are accepted is this release's policy"
            parts.append((server, part(server.name, "yes", words)))
            continue
        lacking = [name for name, has in (("stack", stack), ("version", version), ("model", model)) if not has]
        why = f"not known: {', '.join(lacking)}"
        parts.append((server, part(server.name, "unknown", "", why, _ask(material, "C01", server))))
    return per_server("C19", material, parts)


def knows_stack(server: Server) -> str:
    """The stack's one name, in-process engines too; "" where it is not known."""
    return stack_name(server.text("stack")) or server.text("stack")
