"""The proxies that stacktap is compared with, and the environments they live in.

nginx is Debian's package; mitmproxy and LiteLLM come from PyPI, each into a virtual environment of its own under
`$XDG_CACHE_HOME/stacktap/bench`; the aiohttp proxy runs in the environment of this program, which has aiohttp.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.bench import wire

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
REQUIREMENTS = {"mitmproxy": "mitmproxy==11.0.2", "litellm": "litellm[proxy]"}
"""mitmproxy 11 is the last that runs on Python 3.11."""


class Place(NamedTuple):
    """Where a target finds its upstream, listens, and may write."""

    upstream: int
    port: int
    folder: Path

    @property
    def url(self) -> str:
        """The upstream's base URL."""
        return f"http://127.0.0.1:{self.upstream}"


class Target(NamedTuple):
    """A proxy under test: how it is started, and what the table says about it."""

    name: str
    label: str
    command: Callable[[Place], list[str]]
    version: Callable[[], str]
    """Raises OSError or CalledProcessError when the program is not there."""
    environment: dict[str, str] = {}  # noqa: RUF012 - never written to
    ready_within: float = 20.0


def cache() -> Path:
    """The folder of the competitors' environments."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "stacktap" / "bench"


def program(environment: str, name: str) -> str:
    """The path of a program in one of the environments."""
    return str(cache() / environment / "bin" / name)


def install(environment: str) -> None:
    """Create one environment with what it needs; does nothing when it is there.

    Raises:
        subprocess.CalledProcessError: pip failed; the half-made environment is removed.
    """
    folder = cache() / environment
    if (folder / "complete").exists():
        return
    print(f"installing {REQUIREMENTS[environment]} into {folder}", file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, REQUIREMENTS[environment]], check=True)
    except subprocess.CalledProcessError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / "complete").touch()


def install_nginx() -> None:
    """Install Debian's nginx when there is none and this user may.

    Raises:
        subprocess.CalledProcessError: apt-get failed.
        OSError: there is no apt-get, or the user may not use it.
    """
    if nginx_program() is not None:
        return
    if os.geteuid() != 0:
        raise PermissionError("nginx is missing and only root may install it: apt-get install nginx-light")
    print("installing nginx-light", file=sys.stderr, flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "nginx-light"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def nginx_program() -> str | None:
    """The path of nginx; it stands in /usr/sbin, which is not on every PATH."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def _output(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def _nginx_version() -> str:
    found = nginx_program()
    if found is None:
        raise FileNotFoundError("nginx is not installed")
    match = re.search(r"nginx/(\S+)", _output(found, "-v"))
    return match.group(1) if match else "unknown: nginx -v names none"


def _nginx(place: Place) -> list[str]:
    user = "user root;" if os.geteuid() == 0 else ""
    temporary = "\n".join(
        f"    {kind}_temp_path {place.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (place.folder / "nginx.conf").write_text(
        f"""{user}
daemon off;
worker_processes 1;
pid {place.folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 8192; }}
http {{
{temporary}
    access_log off;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    upstream bench {{
        server 127.0.0.1:{place.upstream};
        keepalive 256;
        keepalive_requests 1000000000;
        keepalive_timeout 3600s;
    }}
    server {{
        listen 127.0.0.1:{place.port} backlog=4096;
        location / {{
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 3600s;
        }}
    }}
}}
"""
    )
    return [str(nginx_program()), "-p", str(place.folder), "-e", "stderr", "-c", str(place.folder / "nginx.conf")]


def _mitmdump(place: Place) -> list[str]:
    listen = ["--listen-host", "127.0.0.1", "--listen-port", str(place.port), "--mode", f"reverse:{place.url}"]
    settings = ["--set", "stream_large_bodies=1", "--set", f"confdir={place.folder}"]
    return [program("mitmproxy", "mitmdump"), "-q", *listen, *settings, "-w", str(place.folder / "flows")]


def _litellm(place: Place) -> list[str]:
    (place.folder / "litellm.yaml").write_text(
        f"""model_list:
  - model_name: bench
    litellm_params: {{model: openai/bench, api_base: "{place.url}/v1", api_key: none}}
general_settings: {{master_key: {wire.KEY}}}
litellm_settings: {{telemetry: false, num_retries: 0}}
"""
    )
    listen = ["--host", "127.0.0.1", "--port", str(place.port), "--num_workers", "1"]
    return [program("litellm", "litellm"), "--config", str(place.folder / "litellm.yaml"), *listen]


def _aiohttp(place: Place) -> list[str]:
    script = str(HERE / "aiohttp_target.py")
    return [sys.executable, script, place.url, str(place.port), str(place.folder / "record.jsonl")]


def package_version(environment: str, package: str) -> Callable[[], str]:
    """How to ask for the version of a package in one of the environments (empty: this program's own)."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    python = sys.executable if not environment else program(environment, "python")
    return lambda: _output(python, "-c", code).strip()


NGINX = Target("nginx", "nginx (proxy_buffering off, no log)", _nginx, _nginx_version)
MITMDUMP = Target("mitmdump", "mitmdump, streaming, -w", _mitmdump, package_version("mitmproxy", "mitmproxy"))
AIOHTTP = Target("aiohttp", "minimal aiohttp proxy, recording", _aiohttp, package_version("", "aiohttp"))
LITELLM = Target(
    "litellm",
    "LiteLLM proxy, 1 worker",
    _litellm,
    package_version("litellm", "litellm"),
    {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"},
    180.0,
)
