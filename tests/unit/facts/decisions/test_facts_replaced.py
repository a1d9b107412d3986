"""What a decision replaced: which words name it, and a later prompt that goes back to it."""

from __future__ import annotations

import re

import pytest

from daemon.reconstitute.facts import decisions
from daemon.reconstitute.facts.decisions import statements
from daemon.reconstitute.facts.language import cues, sentences
from daemon.reconstitute.facts.values import Rule
from tests.support.stores.constructed_sessions import edited, session, user_turn

CONTRASTS = [
    ("en", "Use tabs instead of spaces."),
    ("en", "I preferred Redis over Memcached."),
    ("en", "Use tabs, not spaces."),
    ("en", "We are switching from Redis to Valkey."),
    ("en", "Replace Redis by Valkey."),
    ("de", "Nimm Tabs statt Leerzeichen."),
    ("de", "Nimm Tabs, nicht Leerzeichen."),
    ("de", "Ersetze Redis durch Valkey."),
    ("fr", "Utilise Valkey plutôt que Redis."),
    ("fr", "Remplace Redis par Valkey."),
    ("es", "Usa Valkey en lugar de Redis."),
    ("es", "Usa Valkey, no Redis."),
    ("es", "Cambia Redis por Valkey."),
    ("it", "Usa Valkey al posto di Redis."),
    ("it", "Usa Valkey, non Redis."),
    ("it", "Sostituisci Redis con Valkey."),
    ("pt", "Usa Valkey em vez de Redis."),
    ("pt", "Usa Valkey, não Redis."),
    ("pt", "Troque Redis por Valkey."),
    ("nl", "Gebruik Valkey in plaats van Redis."),
    ("nl", "Gebruik Valkey, niet Redis."),
    ("nl", "Vervang Redis door Valkey."),
    ("pl", "Użyj Valkey zamiast Redis."),
    ("pl", "Użyj Valkey, a nie Redis."),
    ("pl", "Użyj Valkey, nie Redis."),
    ("pl", "Zamień Redis na Valkey."),
    ("ru", "Возьми Valkey вместо Redis."),
    ("ru", "Возьми Valkey, а не Redis."),
    ("ru", "Возьми Valkey, не Redis."),
    ("ru", "Замени Redis на Valkey."),
    ("ar", "استخدم ملفا بدلا من قاعدة."),
    ("ar", "استخدم ملفا عوضا عن قاعدة."),
    ("sv", "Använd Valkey istället för Redis."),
    ("sv", "Använd Valkey, inte Redis."),
    ("cs", "Použij Valkey místo Redis."),
    ("cs", "Použij Valkey, ne Redis."),
    ("tr", "Redis yerine Valkey kullan."),
    ("uk", "Візьми Valkey замість Redis."),
    ("uk", "Візьми Valkey, а не Redis."),
]
SPACED = "en de fr es it pt nl pl ru ar sv cs tr uk".split()  # noqa: SIM905


@pytest.mark.parametrize("code", SPACED)
def test_no_contrast_is_read_inside_a_longer_word(code: str) -> None:
    """Every cue, with letters put before its first, behind its last, and behind the word before what was replaced."""
    for pattern in cues.named(code).patterns("contrast"):
        texts = [text for of, text in CONTRASTS if of == code and pattern.search(text)]
        assert texts, pattern.pattern
        for text in texts:
            match = pattern.search(text)
            assert match is not None
            begin, thing = match.start(), match.start("y")
            if text[begin].isalpha() and begin != thing:
                longer = pattern.search(f"{text[:begin]}re{text[begin:]}")
                assert longer is None or longer.start("y") != thing + 2
            before = text[:thing].rstrip()
            if before and before[-1].isalpha():
                longer = pattern.search(f"{before}ments{text[len(before) :]}")
                assert longer is None or longer.start("y") != thing + len("ments")
            if match.end() != match.end("y"):
                longer = pattern.search(f"{text[: match.end()]}ment{text[match.end() :]}")
                assert longer is None or longer.start("y") != thing


NOUNS = [
    ("en", "Make it 12 hours, because most replacements are found by message."),
    ("en", "Make it 12, because all exchanges are approved by me."),
    ("de", "Nimm 12, weil die Tauschbörse das Heft mit Kasse führt."),
    ("fr", "Mets 12, parce que les remplacements sont trouvés par message."),
    ("es", "Pon 12, porque los cambios se avisan por mensaje."),
    ("it", "Metti 12, perché le sostituzioni si trovano con un messaggio."),
    ("pt", "Põe 12, porque as trocas chegam por mensagem."),
    ("nl", "Zet 12, want vervangingen komen door een bericht."),
    ("pl", "Daj 12, bo zamienniki trafiają na listę."),
    ("ru", "Поставь 12, потому что замены приходят на почту."),
]
"""Words that begin like a cue and name something else."""


@pytest.mark.parametrize(("code", "text"), NOUNS)
def test_a_noun_that_begins_like_a_cue_replaces_nothing(code: str, text: str) -> None:
    assert cues.named(code).find("contrast", text) is None


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("We keep the index masked instead of taken modulo, because it is faster.", ""),
        ("We use a mask instead of the modulo, because it is faster.", "the modulo"),
        ("We use JSON instead of sorted lists, because it is faster.", "sorted lists"),
        ("We use one table instead of two, because it is faster.", "two"),
        ("改成备份到本地的 NAS，不用 B2 了。", "B2"),
        ("因为便宜，我们改用白茶代替红的。", "红"),
    ],
)
def test_what_was_replaced_is_a_thing_or_nothing(text: str, replaced: str) -> None:
    stated = (statements.stated(one, "user", text) for one in sentences.split(text))
    assert [one.replaces for one in stated if one] == [replaced]


RETURNS = [
    ("Use the computed constant instead of the 64.", "back to the literal 64. that constant differs, breaks the ABI."),
    ("Use the computed constant instead of the 64.", "No, go back to 64."),
    ("We use Valkey instead of Redis.", "Let's stay with Redis, it is installed."),
    ("We use Valkey instead of Redis.", "use Redis again"),
    ("We use Backblaze instead of B2.", "ok, back to B2"),
    ("Wir nehmen Valkey statt Redis, weil es frei ist.", "Zurück zu Redis, das läuft schon."),
    ("Wir nehmen Valkey statt Redis, weil es frei ist.", "Wir bleiben bei Redis."),
    ("On utilise Valkey au lieu de Redis.", "Revenons à Redis, c'est installé."),
    ("Usamos Valkey en lugar de Redis.", "Volvamos a Redis, ya está instalado."),
    ("Usiamo Valkey al posto di Redis.", "Torniamo a Redis, è già installato."),
    ("Vamos usar Valkey em vez de Redis, porque é livre.", "Voltemos para Redis, já está instalado."),
    ("We gebruiken Valkey in plaats van Redis.", "Toch terug naar Redis, dat draait al."),
    ("Używamy Valkey zamiast Redis.", "Wracamy do Redis, już działa."),
    ("Используем Valkey вместо Redis.", "Вернёмся к Redis, он уже стоит."),
    ("Ми вирішили: Valkey замість Redis.", "Повертаємося до Redis, він уже є."),
    ("我们用 Valkey 而不是 Redis。", "改回 Redis，已经装好了。"),
    ("RedisではなくValkeyを使います。", "やっぱりRedisに戻してください。"),
    ("نستخدم صفحة بدلا من نافذة منفصلة لأنها أبسط.", "نرجع إلى نافذة منفصلة."),
    ("Vi använder Valkey istället för Redis.", "Tillbaka till Redis, det finns redan."),
    ("Rozhodli jsme se: Valkey místo Redis.", "Zpátky k Redis, ten už běží."),
    ("Redis yerine Valkey kullanıyoruz, çünkü özgür.", "Redis'e geri dönelim, zaten kurulu."),
    ("Redis 대신 Valkey를 사용합니다.", "다시 Redis로 바꿔 주세요."),
]


def found(*prompts: str) -> tuple[Rule, ...]:
    return decisions.find(
        [session(*(user_turn(prompt, edited(f"{place}.py")) for place, prompt in enumerate(prompts)))]
    )


@pytest.mark.parametrize(("decided", "later"), RETURNS)
def test_a_prompt_that_goes_back_to_what_was_replaced_is_the_decision(decided: str, later: str) -> None:
    new, old = found(decided, later)
    assert (new.kind, new.invalid_because, later.startswith(new.text)) == ("decision", "", True)
    assert re.match(r"replaced later|taken back by the next prompt", old.invalid_because)
    assert new.replaces == f"“{old.text}”" or decided.startswith(old.text)


@pytest.mark.parametrize(
    "later",
    [
        "Back to Redis?",
        "Stay with Redis if it fails.",
        "Just look: back to Redis.",
        "Back to the list view.",
        "Do not go back to Redis.",
        "Keep the Valkey client away from Redis.",
        "Explain what Redis was used for.",
        "Remove Redis from the README.",
    ],
)
def test_a_prompt_that_only_speaks_of_what_was_replaced_takes_nothing_back(later: str) -> None:
    assert [
        one.invalid_because for one in found("We use Valkey instead of Redis.", later) if "instead" in one.text
    ] == [""]


def test_what_was_taken_back_may_be_decided_again() -> None:
    made = found("We use Valkey instead of Redis.", "Back to Redis.", "No, back to Valkey after all.")
    assert [one.text for one in made if not one.invalid_because] == ["No, back to Valkey after all."]
    assert len(made) == len(RETURNS[0]) + 1


def test_a_return_in_a_turn_that_was_taken_back_changes_nothing() -> None:
    first = user_turn("We use Valkey instead of Redis.", edited("a.py"))
    facts = session(first, user_turn("Back to Redis.", edited("a.py"), taken_back=True))
    assert [one.invalid_because for one in decisions.find([facts])] == [""]
