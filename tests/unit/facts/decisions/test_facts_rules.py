"""Rules and decisions: which sentences state one, and whether what they state still holds."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts import decisions
from daemon.reconstitute.facts.decisions import statements
from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.session_values import CallStatus, Ending, FileChange, SessionFacts, TakenBack
from daemon.reconstitute.recover import Recovered
from tests.support.stores.constructed_sessions import FOLDER, edited, ran, session, user_turn
from tests.unit.facts import folder_facts, stated_sentences
from tests.unit.facts.folder_facts import revision

WHO = {"u": "user", "a": "agent"}
MISSED = {
    "Let's not cache anything for now.",
    "Never say never, but try.",
    "Reemplaza el archivo de texto por SQLite, porque dos personas escriben a la vez.",
}
"""What is known to be judged wrongly, or is a matter of opinion."""


def rows(*names: str) -> list[tuple[str, str]]:
    lines = [line for name in names for line in getattr(stated_sentences, name).strip().splitlines()]
    return [(WHO[who], text) for who, _, text in (line.split(" ", 2) for line in lines)]


def kinds(who: str, text: str) -> set[str]:
    stated = (statements.stated(sentence, who, text) for sentence in sentences.split(text))
    return {one.kind for one in stated if one is not None}


@pytest.mark.parametrize(("who", "text"), rows("RULES", "LATER_RULES", "LAST_RULES"))
def test_a_rule_is_found(who: str, text: str) -> None:
    assert kinds(who, text)


@pytest.mark.parametrize(("who", "text"), rows("DECISIONS", "LATER_DECISIONS", "LAST_DECISIONS", "REASONED_TASKS"))
def test_a_decision_is_found(who: str, text: str) -> None:
    assert kinds(who, text) or text in MISSED


@pytest.mark.parametrize(
    ("who", "text"), rows("NEAR_MISSES", "LATER_NEAR_MISSES", "LAST_NEAR_MISSES", "UNREASONED_TASKS")
)
def test_a_near_miss_states_nothing(who: str, text: str) -> None:
    assert not kinds(who, text) or text in MISSED


WRITTEN = tomllib.loads((Path(__file__).parent / "statements.toml").read_text(encoding="utf-8"))
KINDS = {
    "rules": ("user", "rule"),
    "user_decisions": ("user", "decision"),
    "agent_decisions": ("agent", "decision"),
    "user_neither": ("user", ""),
    "agent_neither": ("agent", ""),
}


@pytest.mark.parametrize("half", [0, 1], ids=["seen", "held out"])
def test_precision_and_recall_over_all_languages(half: int) -> None:
    """Every second sentence was held out while the cues were mended; both halves are judged alike."""
    told, right, stating = 0, 0, 0
    for language in WRITTEN.values():
        for name, (who, kind) in KINDS.items():
            for text in language[name][half::2]:
                got = kinds(who, text)
                told, stating = told + bool(got), stating + bool(kind)
                right += bool(kind) and got == {kind}
    assert right >= 0.98 * told
    assert right >= 0.9 * stating


def test_most_statements_of_another_round_are_found_and_no_near_miss() -> None:
    stating = [line.split(" ", 2) for line in stated_sentences.UNSEEN_STATEMENTS.strip().splitlines()]
    near = [line.split(" ", 1) for line in stated_sentences.UNSEEN_NEAR_MISSES.strip().splitlines()]
    wrong = [text for who, kind, text in stating if kinds(WHO[who], text) - {kind}]
    wrong += [text for who, text in near if kinds(WHO[who], text)]
    assert wrong == []
    assert sum(kinds(WHO[who], text) == {kind} for who, kind, text in stating) >= 0.8 * len(stating)


@pytest.mark.parametrize("language", WRITTEN)
def test_no_language_takes_a_near_miss_for_a_statement(language: str) -> None:
    texts = [(KINDS[name][0], text) for name in ("user_neither", "agent_neither") for text in WRITTEN[language][name]]
    assert [text for who, text in texts if kinds(who, text)] == []


STANDING = tomllib.loads((Path(__file__).parent / "standing_statements.toml").read_text(encoding="utf-8"))


def decided(text: str, old: str = "10", new: str = "12") -> list[str]:
    """What is found where the turn set one number in the place of another."""
    turn = user_turn(text, edited("a.py"))
    made = _file(("m0", f"fee = {old}\n"), (turn.calls[0].message_id, f"fee = {new}\n"))
    return [rule.kind for rule in decisions.find([session(turn)], [made])]


ONE_TASK = [text for language in STANDING["one_off"].values() for text in language]


@pytest.mark.parametrize("text", [*ONE_TASK, *STANDING["later"]["near_misses"], *STANDING["last"]["near_misses"]])
def test_what_concerns_one_task_or_reports_something_is_no_rule(text: str) -> None:
    assert not decided(text, "1", "2")


@pytest.mark.parametrize("half", [0, 1], ids=["seen", "held out"])
@pytest.mark.parametrize(("name", "least"), [("rules", 0.6), ("decisions", 0.7)])
def test_most_of_what_holds_from_now_on_is_found(name: str, least: float, half: int) -> None:
    texts = [text for language in STANDING[name].values() for text in language[half::2]]
    assert sum(bool(decided(text)) for text in texts) >= least * len(texts)


def test_what_holds_in_other_words_is_found() -> None:
    assert [text for name in ("later", "last") for text in STANDING[name]["holds"] if not decided(text)] == []


@pytest.mark.parametrize("row", STANDING["reason"], ids=lambda row: row["said"])
def test_the_sentence_after_it_may_give_the_reason(row: dict[str, str]) -> None:
    assert decisions.find([session(user_turn(row["said"], edited("a.py")))])[0].reason == row["reason"]


@pytest.mark.parametrize(
    ("text", "is_decided"),
    [
        ("The fee is now 12.", True),
        ("Der Betrag ist jetzt 12.", True),
        ("Set the fee to 12, because the hall got dearer.", True),
        ("Set the fee to 12.", False),
        ("We get 10 instead of 12 because the cache is cold.", False),
        ("Is the fee now 12?", False),
        ("The fee is now 13.", False),
    ],
)
def test_a_number_that_was_set_is_a_decision_where_it_is_explained(text: str, is_decided: bool) -> None:
    assert bool(decided(text)) is is_decided


@pytest.mark.parametrize(
    "text",
    [
        "tests always in red after rebasing",
        "it works but the dates are always in american format",
        "ok then run it",
        "and then the app never starts",
        "leave it as it is",
        "let's do the login page then",
        "die App stürzt immer in Safari ab",
        "die Tests sind nie gelaufen",
        "ok dann machen wir weiter",
        "la pagina non si apre mai",
        "crasha sempre in produzione",
        "andiamo con ordine",
        "la app se cae siempre en safari",
        "no se guarda nunca",
        "as imagens ficam sempre em branco",
        "on passe à la suite",
        "ça plante toujours en prod",
        "on garde ça en tête",
        "de knop werkt nooit",
        "liever niet",
        "идём дальше",
        "робимо далі",
        "الصفحة لا تفتح أبدا",
        "då kör vi",
        "stránka se nikdy nenačte",
        "sayfa asla açılmıyor",
        "用户不能直接修改密码吗",
        "このページは絶対に開かない",
        "페이지가 절대 안 열려",
        "다음으로 가자",
    ],
)
def test_a_terse_report_or_go_on_states_nothing(text: str) -> None:
    assert not kinds("user", text)


def test_a_plain_order_beside_a_wish_for_the_moment_is_no_rule() -> None:
    assert decisions.find([session(user_turn("Just look at it. Don't touch the vendor folder.", edited("a.py")))]) == ()
    assert decisions.find([session(user_turn("It is old. Don't touch the vendor folder.", edited("a.py")))])


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Done. Does the week begin on Monday or Sunday?", "Monday.", "Sunday"),
        ("Does the week begin on Monday or Sunday?", "ok, sunday", ""),
        ("La settimana comincia di lunedì o di domenica?", "Di lunedì. E aggiungi il resto.", "di domenica"),
        ("Le résumé s'adresse-t-il au jury ou au grand public ?", "Au jury.", "au grand public"),
        ("Soll es rot oder blau sein?", "Rot.", "blau sein"),
    ],
)
def test_a_short_answer_that_names_one_of_two_things_is_a_decision(question: str, answer: str, other: str) -> None:
    (rule,) = decisions.find(
        [session(user_turn("Build it.", reply=question)), session(user_turn(answer, edited("a.py")), at=50)]
    )
    assert (rule.kind, rule.who, rule.replaces) == ("decision", "user", other)
    assert rule.note.startswith("the answer to “")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Monday or Sunday?", "Not Sunday."),
        ("Monday or Sunday?", "Monday and Sunday."),
        ("Monday or Sunday?", "Which one is usual?"),
        ("Monday or Sunday?", "Write the monday report."),
        ("Monday or Sunday?", "Maybe Monday."),
        ("Shall it begin on Monday?", "Monday."),
        ("Queres o relatório por mês ou por ano?", "Apaga relatorio.csv e escreve relatorio.txt."),
    ],
)
def test_another_answer_chooses_nothing(question: str, answer: str) -> None:
    assert decisions.find([session(user_turn("Build it.", reply=question), user_turn(answer, edited("a.py")))]) == ()


def test_a_prompt_after_a_turn_that_was_taken_back_is_about_that_turn() -> None:
    shorter = user_turn("Shorten the summary.", edited("a.py"), taken_back=True)
    facts = session(user_turn("We use Flask here.", edited("b.py")), shorter, user_turn("Undo that, leave it long."))
    assert [rule.invalid_because for rule in decisions.find([facts]) if "Flask" in rule.text] == [""]


def test_an_earlier_reply_of_a_turn_may_decide() -> None:
    turn = user_turn("Store it.", edited("a.py"), reply="Done.")
    early = replace(turn.replies[0], text="I chose a file over a database because the data is small.")
    (rule,) = decisions.find([session(replace(turn, replies=(early, *turn.replies)))])
    assert (rule.who, rule.replaces) == ("agent", "a database")


def test_what_the_agent_repeats_only_tells_what_it_replaces() -> None:
    turn = user_turn("ok switch to Valkey", edited("a.py"), reply="The cache now uses Valkey instead of Redis.")
    (rule,) = decisions.find([session(turn)])
    assert (rule.who, rule.text, rule.replaces) == ("user", "ok switch to Valkey", "Redis")


def test_a_later_decision_in_the_same_file_is_told() -> None:
    first = session(user_turn("storage: going with a json file", edited("a.py")))
    second = session(user_turn("json broke. switch to sqlite", edited("a.py")), at=100)
    new, old = decisions.find([first, second])
    assert (new.text, new.note, old.note) == (
        "switch to sqlite",
        "",
        "a later decision changed the same file: “switch to sqlite”",
    )


def test_rules_come_first_then_the_newest_then_what_no_longer_holds() -> None:
    first = session(
        user_turn("Never touch generated/.", edited("a.py")), user_turn("We use Flask here.", edited("b.py"))
    )
    second = session(user_turn("Use FastAPI instead of Flask.", edited("c.py")), user_turn("We stick with uv."), at=100)
    made = decisions.find([first, second])
    assert [rule.text.split()[-1] for rule in made] == ["generated/.", "uv.", "Flask.", "here."]


MORE_LANGUAGES = [
    ("لا تحذف أبدا مجلد الصور.", "rule"),
    ("لا يجوز تخزين كلمات المرور في السجل.", "rule"),
    ("قررنا اعتماد ملف واحد لأن المشروع صغير.", "decision"),
    ("استخدم ملفا نصيا بدلا من قاعدة بيانات.", "decision"),
    ("ربما نستخدم قاعدة بيانات بدلا من الملف.", ""),
    ("أضف صفحة جديدة للكتب.", ""),
    ("Ändra aldrig filerna i generated.", "rule"),
    ("Alla belopp måste vara heltal.", "rule"),
    ("Vi har bestämt att använda en enda fil.", "decision"),
    ("Kanske använder vi Redis istället för SQLite.", ""),
    ("Lägg till en sida för böcker.", ""),
    ("Nikdy neukládej hesla do logu.", "rule"),
    ("Všechny částky musí být celá čísla.", "rule"),
    ("Rozhodli jsme se pro jeden soubor.", "decision"),
    ("Možná použijeme Redis místo SQLite.", ""),
    ("Přidej stránku s knihami.", ""),
    ("Parolaları asla loglara yazma.", "rule"),
    ("Tüm tutarlar tam sayı olmalı.", "rule"),
    ("Tek bir dosya kullanmaya karar verdik.", "decision"),
    ("Belki SQLite yerine Redis kullanalım.", ""),
    ("Kitaplar için bir sayfa ekle.", ""),
    ("Ніколи не записуй паролі в журнал.", "rule"),
    ("Усі суми мають бути цілими числами.", "rule"),
    ("Ми вирішили залишити один файл.", "decision"),
    ("Можливо, візьмемо Redis замість SQLite.", ""),
    ("Додай сторінку для книжок.", ""),
    ("비밀번호는 절대로 로그에 남기지 마세요.", "rule"),
    ("모든 금액은 정수여야 합니다.", "rule"),
    ("파일 하나만 쓰기로 결정했습니다.", "decision"),
    ("아마 SQLite 대신 Redis를 사용하는 게 좋을 것 같아요.", ""),
    ("책 페이지를 추가해 주세요.", ""),
    ("Weights are always in grams, never in pounds.", "rule"),
    ("The result is always empty, never full.", ""),
    ("It always fails, never passes.", ""),
    ("The limit is now 50 rather than 20, because the old one was too low.", "decision"),
    ("It is now 50 rather than 20.", ""),
    ("One table is enough, since there are only ten rows.", "decision"),
    ("重量一律用克，不要用磅。", "rule"),
    ("هرگز این پوشه را پاک نکن.", ""),  # Persian, which the table does not have
    ("Никада не бриши ову фасциклу, љубазно молим.", ""),  # Serbian
]


@pytest.mark.parametrize(("text", "kind"), MORE_LANGUAGES)
def test_a_statement_is_found_in_other_languages_too(text: str, kind: str) -> None:
    assert kinds("user", text) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("Zamiast MariaDB bierzemy PostgreSQL, bo szpital już go ma.", ""),
        ("Statt Redis nehmen wir eine Datei, weil sie reicht.", ""),
        ("因为冬天冷，我们改用普洱代替龙井当招牌茶。", "龙井"),
        ("Sort them by size, not by name.", ""),
        ("Use tabs, not spaces.", "spaces"),
        ("نستخدم صفحة بدلا من نافذة منفصلة لأنها أبسط.", "نافذة منفصلة"),
        ("Vi använder SQLite istället för Redis eftersom det räcker.", "Redis"),
        ("SQLite yerine bir dosya kullanıyoruz, çünkü yeter.", "SQLite"),
    ],
)
def test_what_it_replaces_is_cut_where_it_surely_ends(text: str, replaced: str) -> None:
    (rule,) = decisions.find([session(user_turn(text, edited("a.py")))])
    assert rule.replaces == replaced


@pytest.mark.parametrize(
    "text",
    [
        "> Never touch generated/.",
        "```\nNever touch generated/.\n```",
        "She wrote “Never touch generated/.” there.",
        "# Never touch generated/.",
        "| Never touch generated/. | yes |",
    ],
)
def test_what_is_quoted_or_fenced_states_nothing(text: str) -> None:
    assert decisions.find([session(user_turn(text, edited("a.py")))]) == ()


def test_reason_and_what_it_replaces_are_the_writers_words() -> None:
    prompt = "Build it. We use PostgreSQL instead of SQLite, because several people write at once."
    (rule,) = decisions.find([session(user_turn(prompt, edited("a.py")))])
    assert (rule.kind, rule.who) == ("decision", "user")
    assert rule.replaces == "SQLite"
    assert rule.reason == "several people write at once"
    assert rule.citation.quote == rule.text


def test_the_reason_may_be_the_next_sentence() -> None:
    (rule,) = decisions.find(
        [session(user_turn("Never touch generated/. Because it is made by the build.", edited("a.py")))]
    )
    assert rule.reason == "Because it is made by the build"


def test_a_decision_of_the_agent_counts_where_it_was_carried_out() -> None:
    said = "I chose a file over a database because the data is small."
    assert decisions.find([session(user_turn("Store it.", edited("a.py"), reply=said))])
    assert decisions.find([session(user_turn("Store it.", reply=said))]) == ()
    for ending in (Ending.STOPPED, Ending.FAILED, Ending.OPEN):
        assert decisions.find([session(user_turn("Store it.", edited("a.py"), reply=said, ending=ending))]) == ()


def test_what_an_agent_or_a_command_was_told_is_no_rule_of_the_user() -> None:
    text = "Never touch generated/."
    assert decisions.find([session(user_turn(text, edited("a.py")), parent="ses_1")]) == ()
    assert decisions.find([session(user_turn(text, edited("a.py"), is_command=True))]) == ()


@pytest.mark.parametrize(
    ("turn", "standing"),
    [
        (user_turn("POST should answer 201.", edited("a.py"), taken_back=True), "taken back with its turn"),
        (
            user_turn("POST should answer 201.", edited("a.py"), taken_back=True, in_doubt=True),
            "probably taken back with its turn",
        ),
        (user_turn("POST should answer 201.", edited("a.py")), ""),
    ],
)
def test_a_decision_says_what_became_of_it(turn: object, standing: str) -> None:
    (rule,) = decisions.find([session(turn)])
    assert (rule.invalid_because, rule.note) == (standing, "")


@pytest.mark.parametrize(
    ("said", "ending", "note"),
    [
        ("POST should answer 201.", Ending.STOPPED, "the answer to it was stopped"),
        ("POST should answer 201.", Ending.FAILED, "the answer to it failed"),
        ("POST should answer 201.", Ending.ANSWERED, "its session changed nothing after it"),
        ("We decided against Redis; a file will do.", Ending.ANSWERED, ""),
        ("We decided to keep the old parser.", Ending.ANSWERED, ""),
        ("We stick with SQLite.", Ending.ANSWERED, ""),
        ("Wir bleiben bei SQLite.", Ending.ANSWERED, ""),
        ("Nous restons sur SQLite.", Ending.ANSWERED, ""),
        ("我们还是保留旧的解析器。", Ending.ANSWERED, ""),
        ("データベースはSQLiteのままにします。", Ending.ANSWERED, ""),
    ],
)
def test_a_decision_after_which_nothing_was_changed_may_hold(said: str, ending: Ending, note: str) -> None:
    """Deciding against something, or keeping something, changes no file."""
    found = decisions.find([session(user_turn(said, ending=ending))])
    assert [(rule.invalid_because, rule.note) for rule in found] in ([("", note)], [])
    assert found or not said.isascii()


@pytest.mark.parametrize(
    ("later", "is_taken_back"),
    [
        ("Go back to the queue after all.", True),
        ("No. Go back to RabbitMQ.", True),
        ("Undo that?", False),
        ("Go back to the list view.", False),
        ("The queue works.", False),
    ],
)
def test_a_later_prompt_about_it_takes_a_decision_back(later: str, is_taken_back: bool) -> None:
    """Also where another prompt stands between them."""
    stated = user_turn("We use a table instead of a queue like RabbitMQ.", edited("a.py"))
    facts = session(stated, user_turn("What do you think of NATS?"), user_turn(later, edited("b.py")))
    assert decisions.find([facts])[-1].invalid_because.startswith("taken back by a later prompt: “") is is_taken_back


def test_a_decision_whose_change_was_undone_says_so() -> None:
    facts = session(user_turn("POST should answer 201.", edited("a.py")))
    undone = replace(facts, changes=(FileChange(f"{FOLDER}/a.py", "changed", undone=True),))
    assert decisions.find([undone])[0].invalid_because == "what it changed was undone"


def test_a_later_decision_on_the_same_thing_replaces_it() -> None:
    first = session(user_turn("POST should answer 200.", edited("a.py")))
    second = session(user_turn("POST should answer 201.", edited("a.py")), at=100)
    new, old = decisions.find([first, second])
    assert old.invalid_because == "replaced later: “POST should answer 201.”"
    assert (new.invalid_because, new.replaces) == ("", "“POST should answer 200.”")


def test_what_a_later_decision_names_as_replaced_no_longer_holds() -> None:
    first = session(user_turn("We use Flask here.", edited("a.py")))
    second = session(user_turn("Use FastAPI instead of Flask.", edited("a.py")), at=100)
    new, old = decisions.find([first, second])
    assert old.invalid_because.startswith("replaced later")
    assert new.invalid_because == ""


def test_a_reasoned_task_is_a_decision_where_it_was_carried_out() -> None:
    prompt = "Replace SQLite by PostgreSQL, because the new hall is on another machine."
    (rule,) = decisions.find([session(user_turn(prompt, edited("a.py")))])
    assert (rule.kind, rule.replaces) == ("decision", "SQLite")
    for turn in (
        user_turn(prompt),
        user_turn(prompt, ran("make")),
        user_turn(prompt, edited("a.py"), ending=Ending.STOPPED),
    ):
        assert decisions.find([session(turn)]) == ()
    (undone,) = decisions.find([session(user_turn(prompt, edited("a.py"), taken_back=True))])
    assert undone.invalid_because == "taken back with its turn"


@pytest.mark.parametrize(
    ("stated", "following"),
    [
        ("From now on, answer in German.", "Forget that, English again please."),
        ("We use a table instead of a queue.", "No. Go back to the queue after all."),
        ("Ab jetzt antworte auf Englisch.", "Doch lieber wieder Deutsch."),
        ("On utilise SQLite pour l'index.", "Oublie ça, on revient aux fichiers."),
        ("今後はコメントを英語で書いてください。", "やっぱり日本語に戻してください。"),
    ],
)
def test_what_the_next_prompt_takes_back_says_so(stated: str, following: str) -> None:
    *_, taken = decisions.find([session(user_turn(stated, edited("a.py")), user_turn(following, edited("a.py")))])
    assert taken.invalid_because.startswith("taken back by the next prompt: “")
    kept, *_ = decisions.find([session(user_turn(stated, edited("a.py")), user_turn("Go on.", edited("a.py")))])
    assert kept.invalid_because == ""


def _turns(*steps: tuple[str, str]) -> tuple[SessionFacts, Recovered]:
    """A session of prompts, each of which left one file as it stands beside it."""
    turns = [user_turn(prompt, edited("a.py")) for prompt, _ in steps]
    made = [(turn.calls[0].message_id, content) for turn, (_, content) in zip(turns, steps, strict=True)]
    return session(*turns), _file(*made)


def test_a_number_that_was_set_again_replaces_the_decision_that_named_it() -> None:
    facts, made = _turns(
        ("The fee should be 10.", "fee = 10\n"),
        ("We use SQLite.", "fee = 10\nimport sqlite3\n"),
        ("The fee is now 12, as the hall got dearer.", "fee = 12\nimport sqlite3\n"),
    )
    new, other, old = decisions.find([facts], [made])
    assert (new.replaces, new.invalid_because) == ("“The fee should be 10.”", "")
    assert (other.invalid_because, other.note) == ("", "")
    assert old.invalid_because == "replaced later: “The fee is now 12, as the hall got dearer.”"


@pytest.mark.parametrize(
    ("later", "is_replaced"),
    [
        ("On reflection, use a plain file for the visits: SQLite is too much.", True),
        ("On reflection, use a bigger font: it is hard to read.", False),
    ],
)
def test_what_somebody_thinks_better_of_is_replaced(later: str, is_replaced: bool) -> None:
    facts, made = _turns(("Let's use SQLite for the visits.", "import sqlite3\n"), (later, "open('visits')\n"))
    *_, old = decisions.find([facts], [made])
    assert old.text.startswith("Let's use SQLite")
    assert old.invalid_because.startswith("replaced later") is is_replaced


def test_a_later_decision_that_left_its_lines_alone_is_not_told() -> None:
    facts, made = _turns(
        ("Use SQLite instead of CSV for the visits.", "import sqlite3\n"),
        ("Use Flask instead of Django for the visits.", "import sqlite3\nimport flask\n"),
    )
    assert [rule.note for rule in decisions.find([facts], [made])] == ["", ""]


@pytest.mark.parametrize(
    ("question", "answer", "content", "is_decided"),
    [
        ("After how many seconds should it look?", "Every 300 seconds.", "wait = 300\n", True),
        ("Which port?", "8080, as before", "wait = 8080\n", True),
        ("Which columns do you need?", "bump to 300 n tag it", "wait = 300\n", False),
        ("¿Cada cuántos minutos?", "15 minutos.", "espera = 15\n", True),
        ("After how many seconds should it look?", "Every 300 seconds.", "wait = 60\n", False),
        ("It looks every minute.", "Every 300 seconds.", "wait = 300\n", False),
        ("How often should it look?", "Why not every 300?", "wait = 300\n", False),
    ],
)
def test_a_number_in_an_answer_that_was_written_is_a_decision(
    question: str, answer: str, content: str, is_decided: bool
) -> None:
    before, after = user_turn("Look for it.", reply=question), user_turn(answer, edited("a.py"))
    made = _file(("m0", "wait = 1\n"), (after.calls[0].message_id, content))
    notes = [rule.note for rule in decisions.find([session(before, after)], [made])]
    assert notes == ([f"the answer to “{question}”"] if is_decided else [])


def test_what_it_replaces_is_left_out_where_its_end_is_not_sure() -> None:
    (rule,) = decisions.find([session(user_turn("Zamiast MariaDB bierzemy PostgreSQL.", edited("a.py")))])
    assert rule.replaces == ""


def _file(*contents: tuple[str, str]) -> Recovered:
    """A file after each of these (message, content)."""
    return folder_facts.file("a.py", None, *(revision(text, message_id=message) for message, text in contents))


@pytest.mark.parametrize(
    ("before", "after", "last", "is_changed"),
    [
        ("inn,66000\n", "hotel,72000\n", "inn,65000\n", True),  # what it brought in is gone
        ("a\nrabbit:\n  image: r\n", "a\n", "a\nb\nrabbit:\n  image: r\n", True),  # what it took out is back
        ("return x, 200\n", "return x, 201\n", "return jsonify(x), 201\n", False),
        ("旅館,66000\n", "ホテル,72000\n", "旅館,66000円\n", True),
        ("旅館に泊まる\n", "ホテルに泊まる\n", "ホテルに二泊する\n", False),
        ("a\n", "a\nb\n", "a\nb\nc\n", False),
        ("a\n", "a\n", "b\n", False),
    ],
)
def test_a_decision_whose_changes_were_undone_by_hand_says_so(
    before: str, after: str, last: str, is_changed: bool
) -> None:
    turn = user_turn("We use hotels instead of inns.", edited("a.py"))
    made = _file(("m0", before), (turn.calls[0].message_id, after), ("m9", last))
    (rule,) = decisions.find([session(turn)], [made])
    assert rule.invalid_because == ("what it changed was changed again later" if is_changed else "")


def test_what_became_of_a_file_that_is_not_known_says_nothing() -> None:
    turn = user_turn("We use hotels instead of inns.", edited("a.py"))
    made = folder_facts.file("a.py", None, revision(None, message_id=turn.calls[0].message_id), revision("x"))
    assert decisions.find([session(turn)], [made])[0].invalid_because == ""


def test_two_rules_of_the_same_form_stand_beside_each_other() -> None:
    made = decisions.find([session(user_turn("Never touch generated/. Never touch vendor/.", edited("a.py")))])
    assert [rule.invalid_because for rule in made] == ["", ""]


def test_a_decision_that_was_taken_back_replaces_nothing() -> None:
    first = session(user_turn("POST should answer 200.", edited("a.py")))
    second = session(user_turn("POST should answer 201.", edited("a.py"), taken_back=True), at=100)
    assert decisions.find([first, second])[0].invalid_because == ""


def test_a_rule_that_was_not_kept_says_so() -> None:
    facts = session(user_turn("Never touch generated/."), user_turn("Fix it.", edited("generated/api.py")))
    assert decisions.find([facts])[0].invalid_because == "changed later all the same"
    kept = session(user_turn("Never touch generated/."), user_turn("Fix it.", edited("src/generated.py")))
    assert decisions.find([kept])[0].invalid_because == ""


def test_the_same_words_are_one_rule_and_copies_of_a_fork_are_none() -> None:
    turn = user_turn("Never touch generated/.", edited("a.py"))
    fork = replace(session(turn, at=100), copied=1)
    assert (
        len(decisions.find([session(turn), session(user_turn("never touch generated/", edited("a.py")), at=50), fork]))
        == 1
    )


def test_there_are_at_most_so_many_and_those_that_hold_stay() -> None:
    turns = [user_turn(f"Never touch folder{number}x/.", edited("a.py")) for number in range(decisions.MOST + 20)]
    turns[0] = replace(user_turn("Never touch first/.", edited("a.py")), taken_back=True)
    made = decisions.find([session(*turns)])
    assert len(made) == decisions.MOST
    assert not any(rule.invalid_because for rule in made)
    assert [rule.time for rule in made] == sorted((rule.time for rule in made), reverse=True)


WORDS = [text for _, text in rows("RULES", "DECISIONS", "NEAR_MISSES")]


@given(
    st.lists(
        st.one_of(st.sampled_from(WORDS), st.text(max_size=60), st.sampled_from(["```", "> ", "`", "“", "\n", "| "])),
        max_size=8,
    )
)
def test_whatever_is_said_a_statement_is_a_stretch_of_it(pieces: list[str]) -> None:
    text = " ".join(pieces)
    facts = [session(user_turn(text, edited("a.py"), ran("make", status=CallStatus.STOPPED), reply=text))]
    found = decisions.find(facts)
    source = " ".join(text.split())
    for rule in found:
        assert rule.text in source
        assert rule.reason in source
        assert rule.replaces in source
    assert found == decisions.find(facts)
    assert len(found) <= decisions.MOST


def test_a_revert_of_another_session_changes_nothing() -> None:
    other = session(user_turn("Do it.", edited("b.py")), at=5, reverts=[TakenBack(START_LATER, "msg_x")])
    (rule,) = decisions.find([session(user_turn("Never touch generated/.", edited("a.py"))), other])
    assert rule.invalid_because == ""


START_LATER = 2_000_000
