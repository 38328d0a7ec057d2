"""Who may ask the viewer: this machine, with the key, and no page of another site."""

from __future__ import annotations

from pathlib import Path

import pytest

from checklists.viewer.guard import KEY_HEADER
from tests.support.viewing import KEY, viewing

GOOD = {KEY_HEADER: KEY}


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/", {}, 200, ""),
        ("/static/app.js", {}, 200, ""),
        ("/api/runs", {}, 401, "key_needed"),
        ("/api/runs", {KEY_HEADER: "wrong"}, 401, "key_needed"),
        ("/api/runs", {KEY_HEADER: ""}, 401, "key_needed"),
        ("/api/nothing", {}, 401, "key_needed"),
        ("/api/runs", GOOD, 200, ""),
        ("/api/runs", {**GOOD, "Host": "localhost:8711"}, 200, ""),
        ("/api/runs", {**GOOD, "Host": "evil.example"}, 403, "host_not_allowed"),
        ("/api/runs", {**GOOD, "Host": "127.0.0.1.evil.example"}, 403, "host_not_allowed"),
        ("/", {"Host": "evil.example"}, 403, "host_not_allowed"),
        ("/api/runs", {**GOOD, "Origin": "http://evil.example"}, 403, "origin_not_allowed"),
        ("/api/runs", {**GOOD, "Origin": "null"}, 403, "origin_not_allowed"),
        ("/api/runs", {**GOOD, "Origin": "http://127.0.0.1:1"}, 403, "origin_not_allowed"),
        ("/api/runs", {**GOOD, "Sec-Fetch-Site": "cross-site"}, 403, "origin_not_allowed"),
        ("/api/runs", {**GOOD, "Sec-Fetch-Site": "same-site"}, 403, "origin_not_allowed"),
    ],
)
async def test_who_may_ask(tmp_path: Path, path: str, headers: dict[str, str], status: int, code: str) -> None:
    async with viewing(tmp_path) as viewer, viewer.client.get(path, headers=headers) as response:
        assert response.status == status
        if code:
            assert (await response.json())["error"]["code"] == code
        assert response.headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'"
        )
        assert "unsafe" not in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_a_post_needs_json_and_the_key(tmp_path: Path) -> None:
    async with viewing(tmp_path) as viewer:
        for headers, status in (({}, 401), (GOOD, 415), ({**GOOD, "Content-Type": "text/plain"}, 415)):
            async with viewer.client.post("/api/commands", data=b"{}", headers=headers) as response:
                assert response.status == status
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            async with viewer.client.request(method, "/api/commands/preview", headers=GOOD) as response:
                assert response.status in (404, 405)


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script() -> None:
    import checklists.viewer

    folder = Path(checklists.viewer.__file__).parent / "static"
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "<style" not in page
    assert " on" not in page.replace(" one", "")
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            'setAttribute("style',
        ):
            assert word not in text, (path.name, word)
        for address in ("https://", "//cdn", "@import", "url("):
            assert address not in text, (path.name, address)
