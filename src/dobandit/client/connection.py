"""Requests to a service: repeated where they were lost, and answered with the errors that Python has."""

from __future__ import annotations

import json
import random
import time
import uuid
from typing import TYPE_CHECKING, Any, Self

from dobandit import errors
from dobandit.errors import DobanditError, ParseError, ServiceError, StorageError
from dobandit.rows.export import optional_package

if TYPE_CHECKING:
    import httpx

PREFIX = "/api/v1"
_LATER = (429, 502, 503, 504)  # the request may be repeated
_LONGEST_PAUSE = 2.0


class Connection:
    """One service, and a token."""

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout: float,
        patience: float,
        transport: Any = None,
        first_pause: float = 0.05,
    ) -> None:
        """first_pause: seconds before the first repetition; each is twice as long as the one before"""
        package = optional_package("httpx", "dobandit[client]")
        _check_address(url)
        self._lost: type[Exception] = package.TransportError
        self.url, self.patience, self.first_pause = url.rstrip("/"), patience, first_pause
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client: httpx.Client = package.Client(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            transport=transport,
            follow_redirects=False,
            verify=self.url.startswith("https://"),  # certificates take long to load, and are not needed without
        )

    def get(self, path: str, parameters: Any = None) -> Any:
        return self.send("GET", path, parameters=parameters).json()

    def post(self, path: str, document: Any, once: bool = False) -> Any:
        """once: with a key, so that repeating it does nothing more."""
        return self.send("POST", path, document=document, once=once).json()

    def send(
        self, method: str, path: str, *, parameters: Any = None, document: Any = None, once: bool = False
    ) -> httpx.Response:
        """The answer to a request, which is repeated for `patience` seconds where it may not have arrived. Every
        request can be: reading changes nothing, the rest has a key, or changes nothing the second time."""
        headers = {"Idempotency-Key": uuid.uuid4().hex} if once else {}
        content = None
        if document is not None:
            content, headers["Content-Type"] = json.dumps(document, allow_nan=False), "application/json"
        request = self._client.build_request(method, PREFIX + path, params=parameters, content=content, headers=headers)
        started, pause = time.monotonic(), self.first_pause
        while True:
            wanted = "0"  # seconds that the service asks to wait
            try:
                response = self._client.send(request)
                if response.status_code < 400:
                    return response
                failed = error_of(response)
                if response.status_code not in _LATER:
                    raise failed
                wanted = response.headers.get("retry-after", "0")
            except self._lost as error:
                failed = StorageError(
                    f"the service at {self.url} cannot be reached ({str(error) or type(error).__name__}). What it "
                    "acknowledged is safe; repeat this when it is there."
                )
            wait = max(pause * random.uniform(0.5, 1.0), float(wanted) if wanted.isdigit() else 0.0)
            if time.monotonic() + wait - started > self.patience:
                raise failed
            time.sleep(wait)
            pause = min(pause * 2.0, _LONGEST_PAUSE)

    def close(self) -> None:
        self._client.close()


class Connected:
    """What is reached over a connection: `close` it, or use it in a `with` block."""

    _connection: Connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def error_of(response: httpx.Response) -> DobanditError:
    """A problem of the service's as the error that Python would raise."""
    try:
        said = response.json()
        detail, name = str(said["detail"]), said.get("error", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServiceError(f"the service answered {response.status_code} in a form that is not known here.")
    kind = getattr(errors, name, None) if isinstance(name, str) else None
    if not (isinstance(kind, type) and issubclass(kind, DobanditError)):
        kind = StorageError if response.status_code in _LATER else ServiceError
    error = kind(detail)
    if isinstance(error, ParseError):
        error.line, error.column, error.where = (said.get(key) for key in ("line", "column", "where"))
    return error


def _check_address(url: object) -> None:
    """What could hold a password is not repeated: somebody may have given the address of a storage."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ServiceError(
            "a service's address begins with http:// or https://, but this one does not, or is no text. Give the one "
            "that `dobandit serve` prints."
        )
    if "@" in url:
        raise ServiceError(
            "a service's address holds no user and no password, which would take the place of the token. Leave out "
            "what stands before the @."
        )
