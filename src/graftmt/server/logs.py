"""The server's log: a JSON object a line. A disk that is full loses lines, which are counted, and no request. Layer 6."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from graftmt.errors import printable
from graftmt.places import check_file


class JsonLog:
    """Writes entries to a file, or to standard error."""

    def __init__(self, path: Path | None = None, on_loss: Callable[[], None] | None = None) -> None:
        self.path, self._on_loss = path, on_loss
        self._lock = threading.Lock()
        self._stream: IO[bytes] | None = None
        if path is not None:
            check_file(path)

    def write(self, entry: Mapping[str, Any]) -> None:
        moment = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
        line = json.dumps({"time": stamp, **entry}, ensure_ascii=False) + "\n"
        with self._lock:
            try:
                stream = self._open()
                stream.write(printable(line.rstrip("\n")).encode("utf-8", errors="backslashreplace") + b"\n")
                stream.flush()
            except (OSError, ValueError):
                self._reopen()
                if self._on_loss is not None:
                    self._on_loss()

    def _open(self) -> IO[bytes]:
        """Unbuffered: what could not be written is lost by itself, and does not stand in the way of what follows."""
        if self.path is None:
            return sys.stderr.buffer
        if self._stream is None:
            self._stream = self.path.open("ab", buffering=0)
        return self._stream

    def _reopen(self) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None


class LogHandler(logging.Handler):
    """What modules log, such as packs that come and go, in the same file."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(logging.INFO)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        entry = {"event": "message", "level": record.levelname.lower(), "from": record.name, "text": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            entry["failed"] = record.exc_info[0].__name__
        self.log.write(entry)
