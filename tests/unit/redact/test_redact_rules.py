"""Every rule has a secret that it alone hides and one that it must leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from daemon.redact import detection, known, redact
from daemon.redact.forms import FORMS
from daemon.redact.rules import VENDORS, Rule
from tests.support.secrets.canaries import RULES, RuleCase

_BY_NAME: dict[str, list[Rule]] = defaultdict(list)
for _rule in (*VENDORS, *FORMS):
    _BY_NAME[_rule.name].append(_rule)
_TAKEN: dict[str, int] = defaultdict(int)
CASES: list[tuple[Rule, RuleCase]] = []
for _case in RULES:
    CASES.append((_BY_NAME[_case.name][_TAKEN[_case.name]], _case))
    _TAKEN[_case.name] += 1


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """Whatever other tests learnt is no part of these."""
    with known.only({}):
        yield


def test_every_rule_has_a_case():
    assert {name: len(rules) for name, rules in _BY_NAME.items()} == dict(_TAKEN)


@pytest.mark.parametrize(("rule", "case"), CASES, ids=[f"{n}-{case.name}" for n, (_, case) in enumerate(CASES)])
def test_each_rule_hides_its_secret_and_leaves_the_near_miss(rule: Rule, case: RuleCase, monkeypatch) -> None:
    text = case.text.replace("{}", case.secret)
    innocent = case.text.replace("{}", case.near_miss)

    assert case.secret not in redact(text)
    assert f"[REDACTED:{rule.kind}:" in redact(text)
    assert redact(innocent) == innocent

    for table in ("VENDORS", "FORMS"):
        monkeypatch.setattr(detection, table, tuple(one for one in getattr(detection, table) if one is not rule))
    assert f"[REDACTED:{rule.kind}:" not in redact(text), "another rule hides it too: one of the two is not needed"
