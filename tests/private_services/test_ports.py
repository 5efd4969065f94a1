"""A port is free when a server could listen on it."""

from __future__ import annotations

import socket

import pytest

from private_services import ServiceError, free_port, ports
from private_services.ports import CANDIDATES, LOOPBACK, accepts, is_free


def test_a_free_port_can_be_listened_on_and_is_none_that_the_kernel_gives_away() -> None:
    port = free_port()
    assert port in CANDIDATES
    socket.create_server((LOOPBACK, port)).close()


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free(port)
        assert accepts(port)
    assert is_free(port)
    assert not accepts(port)


def test_connections_that_linger_do_not_make_a_port_taken() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection((LOOPBACK, port))
        listener.accept()[0].close()
    client.close()
    assert is_free(port)


def test_no_free_port_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(ServiceError, match=r"no free port on 127\.0\.0\.1 between 20000 and 32000"):
        free_port()
