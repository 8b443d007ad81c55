"""What a client is told in place of an answer: a status, one sentence, and when to come back. Layer 6."""

from __future__ import annotations

from graftmt.errors import GraftError


class Refused(GraftError):
    """A request that is not answered, with the HTTP status that says why."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


def bad_request(message: str) -> Refused:
    return Refused(400, message)
