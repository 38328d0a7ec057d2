"""Whether an agent's last words ask for a person: prompts, questions of trust, logins. Pure.

A pairing gives the agent no person and no terminal, so whatever asks for one waits in vain, or ends at once.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f]"
)
"""Control sequences of terminals (ECMA-48: CSI, OSC and other strings, two-character ones), and control characters."""

_ASKS = re.compile(
    r"""
      [\[(]\s*(?:y|yes)\s*(?:/[^\])\n]{1,24})+[\])]           # [y/N], (yes/no/always), (Y)es/(N)o comes below
    | \(y\)es\s*/\s*\(n\)o
    | \b(?:press|hit)\s+(?:the\s+)?(?:\[|<|`|'|")?(?:enter|return|esc(?:ape)?|space|any\s+key|ctrl|control|y\b)
    | \b(?:press|hit|type)\s+\S{1,12}\s+(?:to|and)\s+(?:continue|confirm|accept|proceed|approve|exit|quit|start)
    | \bdo\s+you\s+(?:trust|want\s+to|wish\s+to|accept|agree|allow|approve|really)\b
    | \b(?:would\s+you\s+like|are\s+you\s+sure|shall\s+i|should\s+i|may\s+i|ok(?:ay)?\s+to)\b[^\n]*\?
    | \b(?:proceed|continue|overwrite|allow|approve|accept|install)\b[^.\n]{0,60}\?\s*(?:$|[\[(:>❯])
    | \b(?:log|sign)\s*-?\s*in\b[^\n]*(?:https?://|\bcode\b|\bbrowser\b|\brequired\b|\bto\s+continue\b)
    | \b(?:not|aren't|isn't)\s+(?:logged|signed)\s*-?\s*in\b
    | \b(?:please|must|need\s+to|you\s+can)\s+(?:first\s+)?(?:log|sign)\s*-?\s*in\b
    | \b(?:open|visit|go\s+to|browse\s+to|navigate\s+to|paste)\b[^\n]{0,60}https?://\S*
      (?:auth|login|log-in|signin|sign-in|device|oauth|verify|activate|connect)
    | https?://\S*(?:/oauth2?/|/authorize\b|/login/device|/device\b|/activate\b)
    | \b(?:enter|paste|type|provide|input)\b[^.\n]{0,40}
      \b(?:api[\s_-]?key|token|password|passphrase|code|user\s*name|e-?mail|credentials?|model|name|choice|selection)\b
    | \b(?:password|passphrase|username|login)\s*(?:for\s+[^\n]*)?:\s*$
    | \b(?:select|choose|pick)\s+(?:an?|the|one|your|which)\b[^.\n]{0,60}(?:[:?]\s*$|\barrow\b)
    | \buse\s+(?:the\s+)?arrow\s+keys\b
    | \bwaiting\s+for\s+(?:your\s+|user\s+|manual\s+)?
      (?:input|approval|confirmation|authori[sz]ation|authentication|login|permission|(?:a\s+)?person|the\s+user)
    | \b(?:requires?|needs?)\s+(?:your\s+|user\s+|manual\s+)?(?:approval|confirmation|permission)\b
    | \b(?:stdin|input|standard\s+input)\s+is\s+not\s+a\s+(?:tty|terminal)\b
    | \b(?:not\s+a\s+(?:tty|terminal)|no\s+(?:tty|terminal)\b|raw\s+mode\s+is\s+not\s+supported|inappropriate\s+ioctl)
    | (?:no\s+such\s+device|cannot\s+open|can't\s+open|could\s+not\s+open|unable\s+to\s+open|ENXIO)[^\n]{0,40}/dev/tty\b
    | /dev/tty\b[^\n]{0,40}(?:no\s+such\s+device|not\s+configured)
    | \bEOFError\b | \bEOF\s+when\s+reading\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NEGATIVE = re.compile(
    r"\b(?:without|no\s+need\s+to|don't|do\s+not|never|skip(?:ping|s)?|auto-?(?:matically\s+)?(?:accept|approv|confirm))\b"
    r"(?!\s+(?:have|trust))",
    re.IGNORECASE,
)
_LAST_LINES = 12
_QUOTED_CHARACTERS = 240


def plain_text(output: str) -> str:
    """Output as a person would read it: no control sequences; of a line that was written over, what stood last."""
    lines = _ESCAPES.sub("", output.replace("\r\n", "\n")).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def waits_for_a_person(output_tail: str) -> str:
    """The line among an agent's last ones in which it asks for a person, as it stands there; "" where none does."""
    lines = [line.strip() for line in plain_text(output_tail).split("\n")]
    for line in reversed([line for line in lines if line][-_LAST_LINES:]):
        short = line[-4 * _QUOTED_CHARACTERS :]
        if _ASKS.search(short) is not None and _NEGATIVE.search(short) is None:
            return short if len(short) <= _QUOTED_CHARACTERS else short[: _QUOTED_CHARACTERS - 1] + "…"
    return ""
