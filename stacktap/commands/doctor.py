"""`stacktap doctor`: the local servers, what they are, what is loaded, what looks wrong."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe.doctor import Seen
    from stacks.serving.base import ModelIdentity

_MOST_SHOWN = 20
_SURE = {"high": "certain", "medium": "likely", "low": "perhaps"}


@click.command("doctor")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Send this header (a server's key).")
@click.option("--all", "everything", is_flag=True, help="Name also the ports where no LLM server answers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(urls: tuple[str, ...], headers: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Find local model servers and say what they are, what is loaded, and what looks wrong.

    Looks at the ports that your processes listen on and at the well-known ones, or at the URLs given. Sends a dozen
    GETs to each server; nothing is generated, loaded or changed. Exit code 0: nothing looks wrong, 1: something does,
    3: no server was found.
    """
    from probe.doctor import candidate_urls, examine

    wanted = [url if "://" in url else f"http://{url}" for url in urls] or candidate_urls()
    seen = asyncio.run(examine(wanted, _headers(headers)))
    servers = [one for one in seen if one.is_server]
    others = [one for one in seen if not one.is_server and (one.fingerprint.state != "unreachable" or urls)]
    if as_json:
        shown = [one.facts() for one in (*servers, *others)]
        click.echo(json.dumps({"version": 1, "servers": shown}, ensure_ascii=False))
    else:
        for one in servers:
            click.echo("\n".join(_server_lines(one)) + "\n")
        for one in others if everything or urls else ():
            click.echo(f"{one.url}  {one.fingerprint.what}")
        if others and not everything and not urls:
            click.echo(f"{len(others)} other listening ports answer and are no model servers (--all names them)")
    if not servers:
        raise CouldNotRunError(
            "no model server was found" + (" at these URLs" if urls else " on this machine's ports")
            + "; start one (stacktap up), or give its URL"
        )  # fmt: skip
    if any(complaint.level == "finding" for one in servers for complaint in one.complaints):
        raise click.exceptions.Exit(1)


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for header in given:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.UsageError(f"a header is written 'NAME: VALUE', not {header!r}")
        found[name.strip()] = value.strip()
    return found


def _server_lines(seen: Seen) -> Iterator[str]:
    found = seen.fingerprint
    version = f" {found.version.value}" if found.version.value else ""
    through = ", seen through a stacktap relay" if seen.through_stacktap else ""
    yield f"{seen.url}  {found.what}{version} ({_SURE[found.confidence]}{through})"
    yield f"  because   {'; '.join(clue.why for clue in found.clues if clue.weight > 0) or 'see the notes'}"
    details = {identity.name: identity for identity in seen.identities}
    shown = [model for model in seen.models if model.loaded or model.name in details][:_MOST_SHOWN]
    for model in shown:
        state = {True: "loaded", False: "not loaded", None: ""}[model.loaded]
        told = [word for word in (state, *_told(details.get(model.name))) if word]
        yield f"  model     {model.name}" + (f"  ({', '.join(told)})" if told else "")
    if len(shown) < len(seen.models):
        yield f"  and {len(seen.models) - len(shown)} more models"
    for complaint in seen.complaints:
        mark = "looks wrong" if complaint.level == "finding" else "note"
        of = f" [{complaint.model}]" if complaint.model and len(seen.models) > 1 else ""
        yield f"  {mark}{of}: {complaint.what}"
        if complaint.remedy:
            yield f"    -> {complaint.remedy}"
    if not seen.complaints:
        yield "  nothing looks wrong"


def _told(identity: ModelIdentity | None) -> list[str]:
    if identity is None:
        return []
    words: list[str] = []
    context: Any = identity.context_length.value
    if context:
        words.append(f"context {context}")
    if identity.quantization.value:
        words.append(str(identity.quantization.value))
    if identity.template_hash.value:
        words.append(f"template {str(identity.template_hash.value)[:12]}")
    if isinstance(identity.tools.value, bool):
        words.append("tools" if identity.tools.value else "no tools")
    if identity.parser.value:
        words.append(f"parser {identity.parser.value}")
    return words
