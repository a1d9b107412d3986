"""What `make secrets` prints: how many planted secrets can be read, by the frame they stand in and the way they leave.

The first column is every canary in the frame, redacted as a record is. The others are ways out of a real archive, each
asked about a session for every canary, the frames one after the other. Below stands how many innocent texts that look
like secrets were changed. The exit code is 1 when a secret can be read or 3 in 100 innocent texts or more are changed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from daemon.redact import redact, redact_value
from tests.support.secrets.canaries import RULES, SECRETS
from tests.support.secrets.look_alikes import look_alikes
from tests.support.secrets.outputs import WAYS, each_canary, engine
from tests.support.secrets.renderings import FRAMES, seen

_MOST_CHANGED = 0.03


def main() -> int:
    """Print the tables; 1 when something can be read that should not be."""
    leaks, counts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for frame, make in FRAMES.items():
        for _, secret, text in SECRETS:
            before, _, after = text.partition("{}")
            framed = make(before, secret, after)
            counts[frame, "redact"] += 1
            leaks[frame, "redact"] += bool(seen(framed, redact_value(framed.value)))
    with tempfile.TemporaryDirectory() as root, engine(Path(root), each_canary()) as (opened, planted):
        for way, ask in WAYS.items():
            for canary in planted:
                counts[canary.frame, way] += 1
                leaks[canary.frame, way] += bool(seen(canary.framed, ask(opened, canary)))
    _print(leaks, counts)
    rules = [case.name for case in RULES if case.secret in redact(case.text.replace("{}", case.secret))]
    changed, total = Counter[str](), Counter[str]()
    for kind, text in look_alikes():
        total[kind] += 1
        changed[kind] += redact(text) != text
    print(f"\n{len(SECRETS)} canaries, {len(FRAMES)} frames, {len(WAYS) + 1} columns: {leaks.total()} leaks")
    print(f"{len(RULES)} rules: {len(rules)} do not hide their secret {' '.join(rules)}")
    print(f"\n{'innocent texts':<24}{'changed':>8}{'of':>6}")
    for kind, count in total.items():
        print(f"{kind:<24}{changed[kind]:>8}{count:>6}")
    print(f"{'all':<24}{changed.total():>8}{total.total():>6}")
    return 1 if leaks.total() or rules or changed.total() >= _MOST_CHANGED * total.total() else 0


def _print(leaks: Counter[tuple[str, str]], counts: Counter[tuple[str, str]]) -> None:
    columns = ["redact", *WAYS]
    print("leaks of so many secrets, by frame and way out")
    print(f"{'frame':<24}" + "".join(f"{name:>11}" for name in columns))
    for frame in FRAMES:
        cells = (f"{leaks[frame, way]}/{counts[frame, way]}" for way in columns)
        print(f"{frame:<24}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
