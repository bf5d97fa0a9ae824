"""What the tests of the service's safety share."""

import socket
import time

API = "/api/v1"


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert said["detail"]
    return said["detail"]


def raw(house, *parts, wait=5.0):
    """What the service answers to bytes, until it closes; between two parts it has time to read."""
    host, port = house.host.split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as line:
        for i, data in enumerate(parts):
            time.sleep(0.2 if i else 0.0)
            line.sendall(data)
        found = b""
        try:
            while part := line.recv(65536):
                found += part
                if b"\r\n\r\n" in found and b"close" not in found.lower():
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return found
