"""Ports for tests that must name one before anybody listens there."""
import contextlib
import random
import socket


def free_port():
    """Not one of those that the system gives to whoever asks for any: another process may get that one before it is used."""
    for port in random.sample(range(20000, 30000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")
