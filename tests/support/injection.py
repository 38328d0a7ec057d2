"""Hostile texts, and a run that is full of them, recorded by the real recorder.

Every text that can run does the same thing: it calls `stacktapCanary(NAME)`, makes an element called
`stacktap-canary`, or asks for something of `canary.invalid`. Whoever shows the run looks for those three.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from results.manifest import UpstreamFacts, known, new_manifest, unknown, write_manifest
from tests.support.journalled import Raw, record

HOST = "canary.invalid"
"""Nothing answers there (the name is reserved); a request for it is a fault by itself."""
ELEMENT = "stacktap-canary"
PRODUCT = "50337"
"""What `7191*7` comes to: it stands nowhere unless something computed it."""

Harm = Literal["html", "attribute", "script", "url", "style", "comment", "expression", "markdown", "terminal", "shape"]
"""Where a text does harm: as HTML, in a quoted attribute, in a script's string, as a link's address, in a style, in a
comment, to a template engine, to a Markdown renderer, to a terminal; or by its mere shape (length, encoding)."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One hostile text. Bytes that are no UTF-8 are lone surrogates in `text` (`surrogateescape`)."""

    name: str
    harm: Harm
    text: str

    @property
    def raw(self) -> bytes:
        """As bytes on the wire."""
        return self.text.encode("utf-8", "surrogateescape")


def _call(name: str) -> str:
    return f"stacktapCanary(/{name}/.source)"


_HTML = {
    "script": "<script>{call}</script>",
    "script-upper": "<SCRIPT\n>{call}</SCRIPT\t>",
    "img-error": "<img src=x onerror={call}>",
    "img-error-unclosed": "<img src=x onerror={call} ",
    "svg-load": "<svg onload={call}></svg>",
    "svg-script": "<svg><script>{call}</script></svg>",
    "svg-animate": "<svg><animate onbegin={call} attributeName=x dur=1s>",
    "svg-foreign": "<svg><foreignObject><img src=x onerror={call}></foreignObject></svg>",
    "mathml": "<math><mtext><table><mglyph><style><img src=x onerror={call}></style></mglyph></table></mtext></math>"
    "<img src=x onerror={call}>",
    "details": "<details open ontoggle={call}>",
    "focus": "<input autofocus onfocus={call}>",
    "video": "<video><source onerror={call}></video>",
    "iframe-srcdoc": '<iframe srcdoc="<script>parent.{call}</script>"></iframe>',
    "object": '<object data="//{host}/object"></object>',
    "remote-image": '<img src="//{host}/image">',
    "stylesheet": '<link rel=stylesheet href="//{host}/style">',
    "style-import": '<style>@import "//{host}/import";</style>',
    "refresh": '<meta http-equiv=refresh content="0;url=//{host}/refresh">',
    "form": '<form action="//{host}/form"><input name=a><button>go</button></form>',
    "element": "<{element}>harmless by itself</{element}>",
    "heading": "<h1>the verdict: <{element}></{element}> all is well</h1>",
    "template-element": "<template><{element}></template><{element}>",
    "clobbering": '<a id=document><a id=document name=body href="//{host}/clobber"><{element}>',
    "entities-nested": "&lt;script&gt;{call}&lt;/script&gt;<img src=x onerror={call}>",
    "null-in-tag": "<scr\0ipt>{call}</script><img\0src=x onerror={call}><img src=x onerror={call}>",
    "closes-everything": "</script></style></textarea></title></pre></td></table></svg><img src=x onerror={call}>",
    "closes-json": '"}}]}}</script><script>{call}</script>',
    "closes-cdata": "]]><img src=x onerror={call}>",
    "closes-svg-text": "</text></g></svg><img src=x onerror={call}><svg><g><text>",
    "closes-mark": "</mark></code></pre><img src=x onerror={call}>",
    "textarea": "<textarea></textarea><img src=x onerror={call}>",
}
_OTHERS: dict[Harm, dict[str, str]] = {
    "attribute": {
        "double-quote": '" onmouseover="{call}" autofocus onfocus="{call}" tabindex=1 x="',
        "single-quote": "' onmouseover='{call}' autofocus onfocus='{call}' tabindex=1 x='",
        "closes-tag": '"><img src=x onerror={call}>',
    },
    "script": {
        "string-end": '";{call};//',
        "single-string-end": "';{call};//",
        "template-literal": "`;{call};//${{{call}}}",
        "line-separator": "\u2028\";{call};//\u2029';{call};//",
        "closes-script": "</script><img src=x onerror={call}>",
        "comment-open": "<!--<script></script><img src=x onerror={call}>",
    },
    "url": {
        "javascript": "javascript:{call}",
        "javascript-mixed": "JaVaScRiPt:{call}",
        "javascript-tab": "java\tscript:{call}",
        "javascript-space": " \x01javascript:{call}",
        "javascript-authority": "javascript://%0a{call}",
    },
    "style": {
        "css-close": "}}</style><img src=x onerror={call}>",
        "css-import": "red;}}@import url(//{host}/css);*{{background:url(//{host}/css2)",
        "css-url": "red;background:url(//{host}/background)",
    },
    "comment": {
        "comment-end": "--><img src=x onerror={call}>",
        "comment-bang-end": "--!><img src=x onerror={call}>",
    },
    "expression": {
        "jinja": "{{{{7191*7}}}}{{{{ self.__init__ }}}}",
        "jinja-statement": "{{% if 1 %}}{{{{7191*7}}}}{{% endif %}}{{# {call} #}}",
        "dollar": "${{7191*7}}#{{7191*7}}",
        "erb": "<%= 7191*7 %><% {call} %>",
        "percent": "%(name)s %s %d %n {{0}} {{name!r:>9999}}",
        "replacement": "$& $1 \\1 \\g<0> $$",
    },
    "markdown": {
        "md-link": "[click]({javascript})",
        "md-link-entity": "[click](java&#115;cript:{call})",
        "md-image": "![x](//{host}/markdown)",
        "md-autolink": "<{javascript}>",
        "md-reference": "[click][r]\n\n[r]: //{host}/reference",
        "md-fence": "```\n````\n`````\n~~~\n<img src=x onerror={call}>\n```",
        "md-code": "a` <img src=x onerror={call}> `b`` <img src=x onerror={call}> ``c",
        "md-table": "a | b | <img src=x onerror={call}> |\n|---|---|\n| c",
        "md-html-block": "\n\n<div><img src=x onerror={call}></div>\n\n# All is well\n\n- one",
        "md-comment": "<!-- x --><img src=x onerror={call}><!--",
        "md-heading": "\n# The verdict\n\n---\n> quoted <{element}>\n",
    },
    "terminal": {
        "clear": "\x1b[2J\x1b[H\x1b[3J",
        "title": "\x1b]0;stacktap-canary\x07\x1b]2;stacktap-canary\x1b\\",
        "hyperlink": "\x1b]8;;http://{host}/\x1b\\click\x1b]8;;\x1b\\",
        "clipboard": "\x1b]52;c;c3RhY2t0YXA=\x07",
        "alternate": "\x1b[?1049h\x1b[?25l\x1b[?2004l",
        "report-back": "\x1b[6n\x1b[c\x1bZ\x05\x1bP$qm\x1b\\",
        "c1-codes": "\x9b2J\x9d0;stacktap-canary\x9c\x90q\x9c\x84\x85",
        "colours": "\x1b[31;5mred\x1b[8mhidden",
        "overprint": "the model failed\rall is well     \b\b\b\b\x7f",
        "line-drawing": "\x1b(0lqqk\x0e\x0f\x0b\x0c",
        "bell": "\a\a\a",
        "rich-markup": "[red]x[/red] [link=http://{host}/]y[/link] [/] [bold",
        "bidi-override": "\u202egnihton si gnorw\u202c \u2066x\u2069 \u2067y\u2069 \u2068z\u202d\u202b\u202a",
    },
    "shape": {
        "long-word": "stacktapcanary" * 700,
        "long-unspaced-url": "http://127.0.0.1/" + "a/" * 2500,
        "many-lines": "line\n" * 3000,
        "combining": "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f" * 60,
        "zero-width": "a\u200bb\u200dc\ufeffd\u200ee\u200f",
        "broken-utf8": "\udcff\udcfe\udcc0\udcaf\udced\udca0\udc80 <img src=x onerror={call}>",
        "null": "a\0b\0<img src=x onerror={call}>",
        "controls": "".join(map(chr, range(1, 32))),
        "noncharacters": "\ufffe\uffff\U0001ffff",
        "half-surrogate": "\\ud800 and \\udfff",
        "formula": '=HYPERLINK("http://{host}/","x")',
        "formula-pipe": "+cmd|'/c calc'!A0",
        "formula-at": "@SUM(1+1)*cmd",
        "formula-minus": "-2+3",
        "crlf": "x\r\nSet-Cookie: a=b\r\n\r\n<img src=x onerror={call}>",
        "path": "../../../../etc/passwd",
        "prototype": "__proto__",
        "constructor": "constructor",
        "emptiness": "",
        "space": "   ",
        "number": "1e999",
    },
}


def _filled(name: str, form: str) -> str:
    call = _call(name)
    return form.format(call=call, host=HOST, element=ELEMENT, javascript=f"javascript:{call}")


def _payloads() -> Iterator[Payload]:
    for name, form in _HTML.items():
        yield Payload(name, "html", _filled(name, form))
    for harm, forms in _OTHERS.items():
        for name, form in forms.items():
            yield Payload(name, harm, _filled(name, form))


PAYLOADS = tuple(_payloads())
_ORDINARY = Payload("ordinary", "shape", "an ordinary text")
ORDINARY = (_ORDINARY,)
"""In place of the hostile ones: the same run with nothing in it, to compare with."""


def injected_run(folder: Path, payloads: tuple[Payload, ...] = PAYLOADS) -> Path:
    """Record a run into `folder` in which every payload stands in every place that takes it; `run.json` beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    record(folder, [raw for payload in payloads for raw in exchanges(payload)])
    _manifest(folder, payloads)
    return folder


def _manifest(folder: Path, payloads: tuple[Payload, ...]) -> None:
    texts = [_in_json(payload) for payload in payloads]
    whole = " ".join(texts)
    facts = {
        "stack": known(texts[0], texts[0]),
        "version": known(whole, "asked"),
        "launch_flags": known(["llama-server", "--alias", *texts], "process table, pid 1"),
        "model": known(whole, texts[0]),
        "model_digest": unknown(whole),
        "chat_template_hash": known({text: text for text in texts}, "asked"),
        "sampling": known({"temperature": whole, whole: 1}, "asked"),
        "context_length": known(texts, "asked"),
        "kernel_backend": known(whole, "asked"),
        "bits_per_weight": known(texts[-1], whole),
    }
    upstream = UpstreamFacts("up", f"http://127.0.0.1:9/{whole}", facts)
    run_facts = {"agent": known(whole, whole), "agent_version": unknown(whole), "pack_hash": known(texts, whole)}
    made = new_manifest(whole, command=["stacktap", "wrap", *texts], upstreams=[upstream], facts=run_facts)
    write_manifest(folder, made)


def hostile_names() -> tuple[str, ...]:
    """Names that a folder may bear, and that would do harm in a page or a terminal."""
    return (
        "<img src=x onerror=stacktapCanary('folder')>",
        "\" autofocus onfocus=stacktapCanary('folder-name') x='",
        "\x1b]0;stacktap-canary\x07\x1b[2J\u202efolder",
    )


# Requests and answers.


def _in_json(payload: Payload) -> str:
    """The text as a JSON value holds it: what is no UTF-8 is replaced."""
    return payload.raw.decode("utf-8", "replace")


def _in_header(payload: Payload) -> bytes:
    return payload.raw.translate(None, b"\r\n\0")[:3000]


def _request(body: dict[str, Any], payload: Payload | None = None, target: bytes = b"/v1/chat/completions") -> bytes:
    sent = json.dumps(body).encode()
    more = b"X-Noted: " + _in_header(payload) + b"\r\n" if payload else b""
    return b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (target, more, len(sent), sent)


def _answer(body: bytes, payload: Payload | None = None, status: bytes = b"200 OK", kind: bytes = b"") -> bytes:
    more = b"X-Said: " + _in_header(payload) + b"\r\n" if payload else b""
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n"
    return head % (status, kind or b"application/json", more, len(body)) + body


def _tool(name: str, text: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {text or "x": {"type": "string", "description": text}}}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}


def _asked(text: str, *, tool: str = "get_weather", model: str = "m", **more: Any) -> dict[str, Any]:
    said = [{"role": "system", "content": text}, {"role": "user", "content": text}]
    return {"model": model, "messages": said, "tools": [_tool(tool, text)], **more}


def _turn(message: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop", **more}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": usage}).encode()


def _calling(name: str, arguments: str, number: str = "call_1") -> list[dict[str, Any]]:
    return [{"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}]


def _streamed(text: str) -> bytes:
    deltas = ({"role": "assistant", "content": ""}, {"content": text}, {"reasoning_content": text})
    events = [{"id": text, "model": text, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    ended = {"id": text, "model": text, "choices": [{"index": 0, "delta": {}, "finish_reason": text or "stop"}]}
    lines = [json.dumps(event).encode() for event in (*events, ended)]
    return b"".join(b"data: " + line + b"\n\n" for line in (*lines, b"[DONE]"))


def exchanges(payload: Payload) -> Iterator[Raw]:
    """Exchanges that together hold the payload in every place, and end in many kinds of outcome."""
    text = _in_json(payload)
    arguments = json.dumps({"city": text, text or "x": text})
    ok = _answer(_turn({"content": "It rains."}))
    yield Raw(_request(_asked(text), payload), _answer(_turn({"content": text, "reasoning_content": text}), payload))
    called = _calling("get_weather", arguments)
    yield Raw(_request(_asked(text)), _answer(_turn({"content": None, "tool_calls": called})))
    yield Raw(
        _request(_asked(text, tool=text, model=text)),
        _answer(_turn({"content": text, "tool_calls": _calling(text, arguments, text)}, finish_reason=text)),
    )
    yield Raw(_request(_asked("hi")), _answer(_turn({"tool_calls": _calling(text or "?", text)})))
    yield from _left_in_text(payload, text, arguments)
    yield Raw(
        _request(_asked(text, stream=True)), _answer(_streamed(text), kind=b"text/event-stream"), tags=(("task", text),)
    )
    yield Raw(_request(_asked(text, stream=True)), _answer(_streamed(text), kind=b"text/event-stream")[:-60], "rst")
    yield from _refused(payload, text)
    history = [
        *_asked(text)["messages"],
        {"role": "assistant", "content": text, "tool_calls": _calling("get_weather", arguments, text)},
        {"role": "tool", "tool_call_id": text, "name": text, "content": text},
    ]
    yield Raw(_request(_asked(text) | {"messages": history}), ok)
    yield from _on_the_way(payload, text, ok)


def _left_in_text(payload: Payload, text: str, arguments: str) -> Iterator[Raw]:
    """A call that the server left in the text, offered tool and not; evidence lies within hostile text."""
    for name in ("get_weather", text):
        call = json.dumps({"name": name, "arguments": json.loads(arguments)})
        left = f"{text}<tool_call>\n{call}\n</tool_call>"
        yield Raw(_request(_asked(text, tool=name)), _answer(_turn({"content": left}), payload))
    cut = f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "{text}'
    yield Raw(_request(_asked(text)), _answer(_turn({"content": cut}, finish_reason="length")))


def _refused(payload: Payload, text: str) -> Iterator[Raw]:
    """Error answers of several kinds, the text in their words."""
    for status, said in (
        (b"400 Bad Request", {"error": {"message": text, "type": text, "code": text, "param": text}}),
        (b"400 Bad Request", {"error": f"registry.ollama.ai/library/{text} does not support tools"}),
        (b"404 Not Found", {"error": {"message": f"model '{text}' not found", "code": 404}}),
        (b"500 Internal Server Error", {"detail": [{"loc": [text], "msg": text}]}),
        (b"500 Internal Server Error", {"error": {"code": 500, "message": f"Failed to parse input at pos 0: {text}"}}),
        (b"200 OK", {"error": {"message": text}}),
    ):
        answer = _answer(json.dumps(said).encode(), payload, status)
        yield Raw(_request(_asked(text, model=text), payload), answer)
    yield Raw(_request(_asked(text)), _answer(payload.raw, payload, b"503 " + _in_header(payload), b"text/html"))
    # Raw bytes within JSON, which so is none.
    yield Raw(_request(_asked(text)), _answer(b'{"choices":[{"message":{"content":"' + payload.raw + b'"}}]}'))


def _on_the_way(payload: Payload, text: str, ok: bytes) -> Iterator[Raw]:
    """The text in target, query, method, tags and the relay's own words; and traffic that is no HTTP."""
    target = quote(payload.raw[:1500], safe="").encode()
    yield Raw(_request(_asked("hi"), None, b"/v1/%s?q=%s" % (target, target)), ok, tags=((text, text), ("seed", text)))
    bare = payload.raw[:1500].translate(None, b"\r\n\0 \t")
    yield Raw(_request(_asked("hi"), None, b"/" + bare + b"?" + bare), _answer(b"", None, b"404 Not Found"))
    yield Raw(_request(_asked(text)), b"", "refused", tags=(("model", text),))
    yield Raw(_request(_asked(text)), b"HTTP/1.1 200 OK\r\nX-Said: " + _in_header(payload) + b"\r\n", "timeout")
    yield Raw(_request(_asked(text)), payload.raw, "fin")
    yield Raw(_request(_asked(text)), b"", "client")
