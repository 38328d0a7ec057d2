"""Finding the process behind a port."""

import os
import socket
import sys
from pathlib import Path

import pytest

from proxy.process_table import Listener, listener_on


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_our_own_listener_is_found_with_its_command_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = listener_on(server.getsockname()[1])
    assert isinstance(found, Listener)
    assert found.pid == os.getpid()
    assert any("python" in part or "pytest" in part for part in found.command)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_connected_socket_is_no_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert isinstance(listener_on(client.getsockname()[1]), str)


def test_a_system_without_proc_says_so(tmp_path: Path) -> None:
    assert "no process table" in str(listener_on(1, proc=tmp_path))
