"""Load on a server: many clients in mixed directions, batched against unbatched, each answer compared with the offline one.

    python benchmarks/serving.py --seconds 60 --clients 64
    python benchmarks/serving.py --minutes 60 --clients 16       # a soak: memory and open files over time

Starts `graftmt serve --demo` twice, as it is and with --batch-tokens 1, or talks to --url.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from graftmt.server.application import places_of
from graftmt.server.serve_options import ServeOptions
from graftmt.translation_requests import Request
from graftmt.translator import Translator

LINES = {
    "en": "{n} days ago|in {n} weeks: Rome and Athens|{n} kilometers per hour|French and Greek, page {n}|Monday, {n} years ago",
    "fr": "il y a {n} jours|dans {n} semaines|{n} kilomètres par heure|Athènes et Rome {n}",
    "de": "vor {n} Tagen|in {n} Wochen|{n} Kilometer pro Stunde",
    "ru": "{n} дня назад|через {n} недель|{n} километров в час",
    "el": "πριν από {n} ημέρες|σε {n} εβδομάδες|{n} χιλιόμετρα ανά ώρα|Ρώμη και Αθήνα {n}",
}
TARGETS = ("en", "fr", "de", "es", "ru", "uk")
SCORE_TOLERANCE = 1e-4


def requests(count: int) -> list[tuple[str, str, str]]:
    """Lines with their directions, drawn once, so that the offline answers can be made before."""
    chance = random.Random(1)
    found = []
    for _ in range(count):
        source = chance.choice(list(LINES))
        target = chance.choice([code for code in TARGETS if code != source])
        line = chance.choice(LINES[source].split("|")).format(n=chance.randrange(2, 60))
        found.append((line, source, target))
    return found


def offline_answers(wanted: list[tuple[str, str, str]]) -> tuple[Translator, dict[tuple[str, str, str], tuple[str, float]]]:
    base, packs = places_of(ServeOptions(demo=True))
    translator = Translator(base, sorted(packs[0].iterdir()))
    unique = sorted(set(wanted))
    found = translator.translate_requests([Request(*each) for each in unique])
    return translator, {each: (ways[0].text, ways[0].score) for each, ways in zip(unique, found, strict=True)}


@contextmanager
def server(*arguments: str, log: Path) -> Iterator[tuple[str, int]]:
    """A `graftmt serve` of its own; its address and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "graftmt", "serve", "--port", str(port), "--log", str(log), "--quiet", *arguments]
    process = subprocess.Popen(command)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(url + "/ready")
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield url, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Tally:
    """What came back."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self.other: list[tuple[tuple[str, str, str], str]] = []


async def load(url: str, wanted: list[tuple[str, str, str]], right: dict[Any, Any], clients: int, seconds: float) -> Tally:
    """Each client sends one request after the other until the time is up."""
    tally = Tally()
    until = time.monotonic() + seconds

    async def client(number: int, session: httpx.AsyncClient) -> None:
        chance = random.Random(number)
        while time.monotonic() < until:
            each = chance.choice(wanted)
            started = time.monotonic()
            try:
                answer = await session.post("/translate", json=dict(zip(("q", "source", "target"), each, strict=True)))
                if answer.status_code != 200:
                    tally.errors.append(f"{answer.status_code}: {answer.text[:100]}")
                    continue
                text = answer.json()["translatedText"]
            except httpx.HTTPError as error:
                tally.errors.append(type(error).__name__)
                continue
            tally.seconds.append(time.monotonic() - started)
            if text != right[each][0]:
                tally.other.append((each, text))

    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as session:
        await asyncio.gather(*(client(number, session) for number in range(clients)))
    return tally


def crossed(tally: Tally, translator: Translator, right: dict[Any, Any]) -> int:
    """Answers that differ from the offline one and are not one of its ties: no n-best entry within the tolerance."""
    wrong = 0
    for each, text in tally.other:
        line, source, target = each
        ways = translator.translate([line], source=source, target=target, n_best=5)[0]
        best = right[each][1]
        wrong += not any(way.text == text and abs(way.score - best) < SCORE_TOLERANCE for way in ways)
    return wrong


def figures(tally: Tally, seconds: float) -> dict[str, Any]:
    ordered = sorted(tally.seconds)

    def percentile(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else 0.0

    return {
        "answers": len(ordered),
        "errors": len(tally.errors),
        "per_second": round(len(ordered) / seconds, 1),
        "p50_ms": percentile(0.5),
        "p99_ms": percentile(0.99),
    }


def process_facts(pid: int) -> dict[str, Any]:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return {"resident_mb": round(resident / 1024, 1), "open_files": len(os.listdir(f"/proc/{pid}/fd"))}


def mean_batch(url: str) -> float:
    """Lines in a batch, by the server's own metrics."""
    lines = (line.split() for line in httpx.get(url + "/metrics").text.splitlines() if line.startswith("graftmt_batch_lines_"))
    counts = {name: float(value) for name, value in lines if "{" not in name}
    return round(counts["graftmt_batch_lines_sum"] / max(1.0, counts["graftmt_batch_lines_count"]), 1)


def processor_seconds(pid: int) -> float:
    """Of a process, user and system: what its work costs, whatever else the machine does."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each way of serving")
    parser.add_argument("--minutes", type=float, default=0.0, help="soak one server for so long instead")
    parser.add_argument("--url", help="a server that runs already, in place of our own")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    wanted = requests(600)
    translator, right = offline_answers(wanted)
    results: dict[str, Any] = {"clients": options.clients, "seconds": options.seconds}
    log = Path(os.environ.get("TMPDIR", "/tmp")) / f"graftmt-serving-{os.getpid()}.log"

    def measure(name: str, url: str, seconds: float, pid: int | None = None) -> None:
        asyncio.run(load(url, wanted, right, min(options.clients, 8), min(5.0, seconds)))  # compositions are made
        before = 0.0 if pid is None else processor_seconds(pid)
        tally = asyncio.run(load(url, wanted, right, options.clients, seconds))
        used = 0.0 if pid is None else processor_seconds(pid) - before
        results[name] = figures(tally, seconds) | {"ties": len(tally.other), "wrong": crossed(tally, translator, right)}
        results[name]["mean_batch"] = mean_batch(url)
        if pid is not None:
            results[name]["processor_seconds"] = round(used, 1)
            results[name]["per_processor_second"] = round(len(tally.seconds) / max(0.01, used), 1)
        print(name, results[name], tally.errors[:3], flush=True)

    if options.url:
        measure("server", options.url, options.seconds)
    elif options.minutes:
        with server("--demo", log=log) as (url, pid):
            results["soak"] = []
            end = time.monotonic() + 60 * options.minutes
            while time.monotonic() < end:
                measure("minute", url, min(60.0, options.seconds), pid)
                results["soak"].append(results["minute"] | process_facts(pid))
                print(process_facts(pid), flush=True)
    else:
        for name, extra in (("batched", ()), ("unbatched", ("--batch-tokens", "1"))):
            with server("--demo", *extra, log=log) as (url, pid):
                measure(name, url, options.seconds, pid)
                results[name] |= process_facts(pid)
        results["ratio"] = round(results["batched"]["per_second"] / max(0.1, results["unbatched"]["per_second"]), 2)
        by_work = [results[name]["per_processor_second"] for name in ("batched", "unbatched")]
        results["ratio_by_processor_time"] = round(by_work[0] / max(0.1, by_work[1]), 2)
        print("batched / unbatched:", results["ratio"], "by processor time:", results["ratio_by_processor_time"])
    log.unlink(missing_ok=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
