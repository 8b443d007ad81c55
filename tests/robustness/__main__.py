"""All attacks, counted: `python -m robustness`. Exits with 1 where something was found, and says how to replay it.

python -m robustness --processes 2                  # all, within an hour on two cores
python -m robustness documents tensors --share 0.1  # a tenth of two kinds
python -m robustness --replay documents:1:17        # one case, with all that it said
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from robustness import archives
from robustness.attacks import COUNTS, MUTATIONS, Attacks
from robustness.cases import Finding, Tally
from robustness.isolation import quick_folder, warm_up
from robustness.world import World, make_world

_attacks: list[Attacks] = []
"""In a process that runs cases: its own."""


def main() -> None:
    options = parse_options()
    folder = Path(tempfile.mkdtemp(prefix="graftmt-robustness-", dir=options.folder or quick_folder()))
    try:
        warm_up()
        archives.prepare()
        world = make_world(folder / "world")
        if options.replay:
            sys.exit(replay(world, folder, options.replay))
        sys.exit(run_all(world, folder, options))
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m robustness", description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[[], *COUNTS], help="of attack (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other cases")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of cases, such as 0.1")
    parser.add_argument("--sample", action="store_true", help="few cases of each kind: some minutes on one core")
    parser.add_argument("--first", type=int, default=0, help="number of the first case, to continue after another run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="stop after N minutes")
    parser.add_argument("--output", type=Path, help="a JSON file for counts and findings")
    parser.add_argument("--replay", metavar="KIND:SEED:NUMBER", help="run this case alone")
    parser.add_argument("--folder", type=Path, help="where cases are made (default: in memory)")
    parser.add_argument("--keep", action="store_true", help="leave the folder, to look at")
    return parser.parse_args()


def run_all(world: World, folder: Path, options: argparse.Namespace) -> int:
    started, tallies = time.monotonic(), {}
    sound = Attacks(world, folder / "check").world_mark()
    for kind in options.kinds or COUNTS:
        count = COUNTS[kind][1] if options.sample else max(1, round(COUNTS[kind][0] * options.share))
        tallies[kind] = run_kind(world, folder, kind, count, options, started)
        write(options.output, tallies, started)
    if Attacks(world, folder / "check").world_mark() != sound:
        tallies["world"] = Tally(findings=[Finding("outside", "all", "world", "", "", "the sound things were changed")])
        write(options.output, tallies, started)
    mutations = sum(tally.cases for kind, tally in tallies.items() if kind in MUTATIONS)
    print(f"{table(tallies)}\n{mutations:,} mutations; {time.monotonic() - started:.0f} s")
    findings = [finding for tally in tallies.values() for finding in tally.findings]
    tell(findings)
    return 1 if findings else 0


def tell(findings: list[Finding]) -> None:
    """Each cause once, with an example."""
    causes: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        causes.setdefault((finding.problem, finding.signature), []).append(finding)
    for (problem, signature), found in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        example = found[0]
        print(f"\n{len(found)} × {problem}: {signature}\n  {example.thing}, {example.damage}; {example.reader}")
        print(f"  --replay {example.case}")


def run_kind(world: World, folder: Path, kind: str, count: int, options: argparse.Namespace, started: float) -> Tally:
    tally, shown = Tally(), time.monotonic()
    cases = [(kind, options.seed, options.first + number) for number in range(count)]
    with get_context("fork").Pool(options.processes, start_worker, (world, folder)) as pool:
        for done in pool.imap_unordered(run_case, cases, chunksize=4 if count > 100 else 1):
            tally.add(done)
            for found in done.findings:  # at once: a run that is cut short has told what it found
                print(f"  found {found.problem}: {found.signature} (--replay {found.case})", flush=True)
            if time.monotonic() - shown > 20:
                shown = time.monotonic()
                print(
                    f"{kind}: {tally.cases:,}/{count:,} cases, {tally.runs:,} runs, {len(tally.findings)} findings", flush=True
                )
            if options.minutes and time.monotonic() - started > 60 * options.minutes:
                break
    print(f"{kind}: {tally.cases:,} cases, {tally.runs:,} runs, {len(tally.findings)} findings", flush=True)
    return tally


def start_worker(world: World, folder: Path) -> None:
    _attacks.append(Attacks(world, folder / f"sandbox-{os.getpid()}"))


def run_case(case: tuple[str, int, int]) -> Tally:
    """An error of our own is a finding too: a case that was not judged proves nothing."""
    try:
        return _attacks[0].run(*case)
    except Exception:
        name, told = ":".join(map(str, case)), traceback.format_exc()
        return Tally(cases=1, findings=[Finding("not judged", name, "", "", "", told[-300:], told)])


def replay(world: World, folder: Path, case: str) -> int:
    kind, seed, number = case.split(":")
    tally = Attacks(world, folder / "replay").run(kind, int(seed), int(number), say=print)
    for finding in tally.findings:
        print(f"\nFOUND {finding.problem}: {finding.signature}\n{finding.thing}, {finding.damage}; {finding.reader}")
        print(finding.details)
    return 1 if tally.findings else 0


def write(path: Path | None, tallies: dict[str, Tally], started: float) -> None:
    if path is not None:
        document = {"seconds": round(time.monotonic() - started), "kinds": {kind: plain(one) for kind, one in tallies.items()}}
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def plain(tally: Tally) -> dict[str, Any]:
    values = {name: value for name, value in vars(tally).items() if name != "findings"}
    return {**values, "problems": dict(problems(tally)), "findings": [finding.to_dict() for finding in tally.findings]}


def problems(tally: Tally) -> Counter[str]:
    return Counter(finding.problem for finding in tally.findings)


def table(tallies: dict[str, Tally]) -> str:
    lines = [f"{'kind':<12}{'cases':>8}{'runs':>9}{'refused':>9}{'accepted':>10}{'memory MB':>11}  found"]
    for kind, tally in tallies.items():
        found = ", ".join(f"{count} {problem}" for problem, count in problems(tally).items()) or "nothing"
        counts = f"{tally.cases:>8,}{tally.runs:>9,}{tally.refused:>9,}{tally.accepted:>10,}{tally.memory >> 20:>11}"
        lines.append(f"{kind:<12}{counts}  {found}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
