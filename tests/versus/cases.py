"""The set-ups of `tests.setups` that are run through both tools, and the thing that cures each."""

from __future__ import annotations

CURES: dict[str, str] = {
    "raw": "parser",
    "no-jinja": "template engine",
    "bare-template": "template",
    "small-context": "context",
    "key": "key",
    "short-answers": "output limit",
    "mlx-no-parser": "parser",
    "mlx-bare-template": "template",
    "mlx-short-answers": "output limit",
    "mlx-model-name": "model name",
    "lcp-no-parser": "parser",
    "lcp-tools-left-out": "template",
    "lcp-small-context": "context",
    "gateway-buffers": "gateway",
    "gateway-drops-calls": "gateway",
    "gateway-strips-tools": "gateway",
    "gateway-impatient": "gateway",
    "gateway-cuts-streams": "gateway",
    "gateway-rate-limit": "wait",
    "other-program": "url",
    "loading": "wait",
    "dead-port": "server",
    "tls-to-plain": "url",
    "wrong-base": "url",
}
"""Set-up to what has to be changed, in the words of `tests.versus.words`."""

MODELS: dict[str, str] = {"gateway-buffers": "counting"}
"""Set-up to a model of `tests.versus.canary` that is not the one of the same name."""

NOTES: dict[str, str] = {
    "lcp-small-context": "together with the next remedy (`lcp-no-parser`): this server has both faults",
    "gateway-cuts-streams": "by its second half; the party is not the right one",
}
"""What has to be said of a remedy of stacktap's that heals."""
