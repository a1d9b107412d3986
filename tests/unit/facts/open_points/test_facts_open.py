"""What is left open, and what was settled since."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts import open_points, setbacks
from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.open_points import failing
from daemon.reconstitute.facts.session_values import (
    Call,
    CallStatus,
    Citation,
    Ending,
    SessionFacts,
    TakenBack,
    TestRun,
    Turn,
)
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, SetbackKind
from tests.support.stores.constructed_sessions import START, edited, ran, session, used, user_turn
from tests.unit.facts import folder_facts, stated_sentences, unchecked_sentences
from tests.unit.facts.session.test_facts_setbacks import TURNS


def find(*sessions: SessionFacts) -> list[OpenPoint]:
    return list(open_points.find(sessions, setbacks.find(sessions)))


def texts(*sessions: SessionFacts) -> list[str]:
    return [point.text for point in find(*sessions)]


LIST = used("todowrite", "2 entries")
TODOS = [
    ("Write the import", "in_progress"),
    ("Add paging", "pending"),
    ("Rename it", "completed"),
    ("Drop it", "cancelled"),
]


def test_the_last_state_of_a_todo_list_is_open() -> None:
    facts = session(user_turn("Build it.", LIST), todos=TODOS)
    found = find(facts)
    assert {(point.text, point.detail) for point in found} == {
        ("Write the import", "in progress"),
        ("Add paging", "pending"),
    }
    assert found[0].citation.message_id == LIST.message_id


@pytest.mark.parametrize(
    "later",
    [
        session(user_turn("Please add paging."), at=60),
        session(user_turn("Go on.", LIST), todos=[("add  PAGING", "completed")], at=60),
        session(user_turn("Go on.", LIST), todos=[("Add paging", "cancelled")], at=60),
    ],
)
def test_a_todo_that_a_later_session_took_up_is_not_open(later: SessionFacts) -> None:
    assert texts(session(user_turn("Build it.", LIST), todos=[("Add paging", "pending")]), later) == []


def test_a_todo_whose_file_or_command_came_later_is_not_open() -> None:
    todos = [("Write tests/test_api.py", "in_progress"), ("Run make lint", "pending"), ("Add paging", "pending")]
    facts = session(user_turn("Build it.", LIST, edited("tests/test_api.py"), ran("make lint")), todos=todos)
    assert texts(facts) == ["Add paging"]


def test_a_todo_list_of_a_turn_that_was_taken_back_is_not_open() -> None:
    assert texts(session(user_turn("Build it.", LIST, taken_back=True), todos=TODOS)) == []


@pytest.mark.parametrize(
    "question",
    [
        "Which port should the server listen on?",
        "Should I delete the old table, or keep it for the migration?",
        "Welche Datenbank soll der Dienst verwenden?",
        "Quel format de date faut-il utiliser ?",
        "¿Qué base de datos usa el servicio?",
        "Quale formato di data preferite per i report?",
        "Какую базу данных использовать для тестов?",
        "Vilken port ska servern använda?",
        "Jaký port má server používat?",
        "Sunucu hangi portu kullanmalı?",
        "Який порт має слухати сервер?",
        "서버는 어떤 포트를 써야 하나요?",
        "服务应该监听哪个端口？",
        "サーバーはどのポートを使いますか？",
        "أي منفذ يجب أن يستخدم الخادم؟",
        "Ո՞ր նավահանգիստը պետք է օգտագործի սերվերը",
        "Ποια θύρα πρέπει να χρησιμοποιεί ο διακομιστής;",
    ],
)
def test_a_question_at_the_end_of_a_session_is_open(question: str) -> None:
    (point,) = find(session(user_turn("Start.", reply=f"I looked at it. {question}")))
    assert (point.kind, point.text) == (OpenKind.QUESTION, question)


@pytest.mark.parametrize(
    "closing",
    [
        "Anything else?",
        "Shall I also add tests for the import?",
        "Would you like me to commit the changes now?",
        "Is there anything else or shall we stop here?",
        "Soll ich auch Tests für den Import schreiben?",
        "Kann ich sonst noch etwas tun?",
        "Voulez-vous que je lance aussi les tests ?",
        "¿Quieres que añada también las pruebas?",
        "Vuoi che aggiunga anche i test?",
        "Quer que eu adicione também os testes?",
        "Zal ik ook tests toevoegen voor de import?",
        "Czy chcesz, żebym dodał też testy?",
        "Хотите, чтобы я добавил ещё и тесты?",
        "Vill du att jag lägger till tester också?",
        "Chcete, abych přidal i testy?",
        "Testleri de ekleyeyim mi?",
        "Хочете, щоб я додав і тести?",
        "테스트도 추가할까요?",
        "هل تريد أن أضيف الاختبارات أيضا؟",
        "هل هناك شيء آخر؟",
        "需要我再添加测试吗？",
        "テストも追加しましょうか？",
        "Why? Because the port is in use.",
        "The function `is_ready?` is new.",
    ],
)
def test_a_courtesy_or_rhetoric_is_not_open(closing: str) -> None:
    assert texts(session(user_turn("Start.", reply=f"All is in place. {closing}"))) == []


def test_a_question_that_was_followed_or_taken_up_is_not_open() -> None:
    question = "Which port should the server listen on?"
    assert texts(session(user_turn("Start.", reply=question), user_turn("8000."))) == []
    later = session(user_turn("The server should listen on port 8000."), at=60)
    assert texts(session(user_turn("Start.", reply=question)), later) == []
    assert texts(session(user_turn("Start.", reply=question, taken_back=True))) == []
    assert texts(session(user_turn("Start.", reply=question), parent="ses_1")) == []


@pytest.mark.parametrize(
    "reply",
    [
        "I could not reach the registry, so the upload is missing.",
        "I skipped the Windows installer.",
        "The retry logic is not yet implemented.",
        "Die Migration konnte ich nicht ausführen.",
        "Je n'ai pas pu lancer la migration.",
        "No pude ejecutar la migración.",
        "Non ho potuto eseguire la migrazione.",
        "Não consegui executar a migração.",
        "Ik kon de migratie niet uitvoeren.",
        "Nie mogłem uruchomić migracji bazy.",
        "Я не смог запустить миграцию.",
        "Jag kunde inte köra migreringen.",
        "Nepodařilo se mi spustit migraci.",
        "Migrasyonu çalıştıramadım.",
        "Я не зміг запустити міграцію.",
        "마이그레이션을 실행하지 못했습니다.",
        "لم أتمكن من تشغيل الترحيل.",
        "我无法运行数据库迁移。",
        "マイグレーションは実行できませんでした。",
    ],
)
def test_what_the_agent_said_it_did_not_do_is_open(reply: str) -> None:
    (point,) = find(session(user_turn("Start.", edited("a.py"), reply=f"{reply}\n\nThe rest is in place.")))
    assert (point.kind, point.text) == (OpenKind.NOT_DONE, reply)
    assert texts(session(user_turn("Start.", reply=reply, ending=Ending.STOPPED), user_turn("Go on."))) == []


@pytest.mark.parametrize(
    "reply",
    [
        "I did not change anything else.",
        "I could not find any problems.",
        "The old name is no longer used.",
        "I left the tests out on purpose, as you asked.",
        "If it is not yet implemented, the call fails.",
        "Ich habe sonst nichts geändert.",
    ],
)
def test_what_needed_no_doing_is_not_open(reply: str) -> None:
    assert texts(session(user_turn("Start.", reply=reply))) == []


@pytest.mark.parametrize("reply", stated_sentences.UNDONE.strip().splitlines())
def test_a_task_that_was_not_done_is_open_in_every_language(reply: str) -> None:
    assert reply in texts(session(user_turn("Start.", edited("a.py"), reply=f"{reply}\n\nThe rest is in place.")))


@pytest.mark.parametrize("reply", stated_sentences.NEEDED_NO_DOING.strip().splitlines())
def test_what_was_only_left_alone_is_not_open(reply: str) -> None:
    assert texts(session(user_turn("Start.", edited("a.py"), reply=f"{reply}\n\nThe rest is in place."))) == []


@pytest.mark.parametrize(
    "row",
    (unchecked_sentences.UNCHECKED + unchecked_sentences.TO_BE_CHECKED + unchecked_sentences.LATER).splitlines(),
)
def test_what_was_not_checked_or_is_provisional_is_open(row: str) -> None:
    _, sentence = row.split(" ", 1)
    found = find(session(user_turn("Start.", edited("a.py"), reply=f"{sentence}\n\nx.")))
    assert [(point.kind, point.text) for point in found] == [(OpenKind.NOT_DONE, sentence)]


@pytest.mark.parametrize(
    "row", (unchecked_sentences.NOTHING_LEFT + unchecked_sentences.LATER_NOTHING_LEFT).splitlines()
)
def test_what_the_program_does_or_what_was_checked_is_not_open(row: str) -> None:
    _, sentence = row.split(" ", 1)
    assert texts(session(user_turn("Start.", edited("a.py"), reply=f"{sentence}\n\nx."))) == []


PROVISIONAL = "The wording is provisional; somebody from the office must review it."


@pytest.mark.parametrize(
    ("later", "is_open"),
    [
        ([], True),
        ([user_turn("Add a footer.", edited("footer.py"))], True),
        ([user_turn("The office is fine with the wording.")], False),
        ([user_turn("Shorter, please.", edited("mail.py"))], False),
    ],
)
def test_what_is_provisional_is_open_until_a_later_turn_is_about_it(later: list[Turn], is_open: bool) -> None:
    made = user_turn("Write the mail.", edited("mail.py"), reply=f"Done. {PROVISIONAL}")
    assert (PROVISIONAL in texts(session(made, *later))) is is_open
    assert (PROVISIONAL in texts(session(made), session(*later, at=60))) is is_open


def test_a_short_answer_in_a_later_session_settles_a_question() -> None:
    asked_for = session(user_turn("Start.", reply="Should the notice go by letter, or by telegram?"))
    assert texts(asked_for, session(user_turn("Telegram. Add a class for it.", edited("a.py")), at=60)) == []
    assert texts(asked_for, session(user_turn("Rename it.", edited("a.py")), at=60))


def test_only_the_next_prompt_answers_and_only_as_the_first_of_its_session() -> None:
    question = "Should the notice go by letter, or by telegram?"
    asked_for = session(user_turn("Start.", reply=question))
    other = session(user_turn("Rename it.", edited("a.py")), at=60)
    assert texts(asked_for, session(user_turn("Yes. By both."), at=60)) == []
    assert texts(asked_for, other, session(user_turn("Yes. By both."), at=90)) == [question]
    assert texts(asked_for, session(user_turn("Yes. By both.", taken_back=True), at=60)) == [question]


def test_a_command_that_ran_elsewhere_settles_no_failure() -> None:
    facts = session(
        user_turn("Test it.", ran("make test", 2, folder="/work/app/core"), ran("make test", folder="/work/app/web"))
    )
    assert texts(facts) == ["make test"]


def test_tests_of_two_folders_are_told_apart() -> None:
    failed = TestRun("npm test", False, "1 failed", Citation("ses_1", "msg_1", START), "/work/app/core")
    passed = TestRun("npm test", True, "3 passed", Citation("ses_1", "msg_2", START + 5), "/work/app/web")
    (point,) = find(replace(session(user_turn("Test.")), tests=(failed, passed)))
    assert (point.text, point.detail) == ("npm test", "in core; 1 failed")
    again = replace(failed, passed=True, citation=replace(failed.citation, time=START + 9))
    assert texts(replace(session(user_turn("Test.")), tests=(failed, passed)), replace(session(), tests=(again,))) == []


@pytest.mark.parametrize(
    ("command", "prompt", "is_open"),
    [
        ("sh tools/publish staging", "Never mind the publish, I do it myself tonight.", False),
        ("bin/deploy", "Lass das Deployment, das mache ich selbst.", False),
        ("bin/deploy", "先不deploy了，我自己来。", False),
        ("bin/deploy", "Il deploy lo faccio io.", False),
        ("npm run bundle", "Bündeln lassen wir, der bundle ist egal.", False),
        ("make bench", "Make the header blue.", True),
        ("npm start", "Start with the header.", True),
        ("python3 tools/load.py", "Use python3 features where you can.", True),
        ("bin/deploy", "Rename the header.", True),
        ("bin/deploy", "", True),
        ("docker compose up -d", "We stay with compose, no Kubernetes.", True),
        ("cd core && make build", "Describe the core in the README.", True),
        ("cd core && make test", "Describe the core in the README.", True),
    ],
)
def test_a_failed_command_that_a_later_prompt_names_is_not_open(command: str, prompt: str, is_open: bool) -> None:
    failed = user_turn("Go.", ran(command, 1))
    assert bool(texts(session(failed, user_turn(prompt)))) is is_open
    assert bool(texts(session(failed), session(user_turn(prompt), at=60))) is is_open
    assert texts(session(failed, user_turn(prompt), user_turn("Again.", ran(command, 1)))) == [
        command.removeprefix("cd core && ")
    ]


@pytest.mark.parametrize(
    ("command", "output", "told"),
    [
        ("bundle exec rspec", "/bin/bash: line 1: bundle: command not found", "`bundle` is not installed"),
        ("npm test", "> jest --ci\n\nsh: 1: jest: not found", "`jest` is not installed"),
        ("gradle check", "zsh: command not found: gradle", "`gradle` is not installed"),
        ("gradle check", "bash: Zeile 1: gradle: Kommando nicht gefunden.", "`gradle` is not installed"),
        ("tests/run.sh", "bash: tests/run.sh: No such file or directory", "`tests/run.sh` is not there"),
    ],
)
def test_tests_that_could_not_be_started_are_told_so(command: str, output: str, told: str) -> None:
    (point,) = find(session(user_turn("Test it.", ran(command, 127, output))))
    assert (point.text, point.detail) == (command, f"exit 127; could not run: {told}")


REFUSED = ran("rsync -a site/ web:/srv/", status=CallStatus.REFUSED)


@pytest.mark.parametrize(
    ("calls", "reply", "open_"),
    [
        ([REFUSED], "Non ho pubblicato niente: la pubblicazione la fa solo Anna.", []),
        ([REFUSED, ran("ls")], "I did not run rsync.", []),
        ([ran("ls"), REFUSED], "サイトは公開できませんでした。", []),
        ([REFUSED], "I did not run rsync. I could not draw the diagram.", ["I could not draw the diagram."]),
        ([REFUSED, ran("ls")], "I could not draw the diagram.", ["I could not draw the diagram."]),
        ([ran("ls")], "I did not run rsync.", ["I did not run rsync."]),
    ],
)
def test_what_was_not_done_as_it_was_refused_is_not_open(calls: list[Call], reply: str, open_: list[str]) -> None:
    assert texts(session(user_turn("Go.", *calls, reply=reply))) == open_


NOT_DONE = "I could not draw the diagram."


@pytest.mark.parametrize(
    ("later", "is_open"),
    [
        ([], True),
        ([user_turn("Which colours does the map have?")], True),
        ([user_turn("Which colours does the map have?", edited("map.svg"))], True),
        ([user_turn("Add a legend to the map of the town.", edited("map.svg"))], True),
        ([user_turn("Add a legend to the map of the town.", ran("make map"), ending=Ending.STOPPED)], True),
        ([user_turn("Is the diagram needed?")], False),
        ([user_turn("Fine.")], False),
        ([user_turn("Rename the map.", edited("map.svg"))], False),
        ([user_turn("Was sagt die Karte?"), user_turn("Gut so.")], False),
        ([user_turn("Never mind then, the printer does that for us.")], False),
        ([user_turn("Lascia perdere, lo faccio io domani mattina.")], False),
        ([user_turn("No need. Add a legend to the map of the town.", edited("map.svg"))], False),
        ([user_turn("Try it with plain text and a bit of patience.", edited("drawing.py"))], False),
        ([user_turn("The fonts are in the other folder, look there.", ran("dot -Gfontpath=fonts b.dot"))], False),
        ([user_turn("Next the town map.", edited("map.svg"), reply="I could draw the diagram after all.")], False),
        ([user_turn("Next comes the map of the town.", edited("docs/diagram.svg", tool="write"))], False),
    ],
)
def test_what_was_not_done_is_open_until_it_is_dealt_with(later: list[Turn], is_open: bool) -> None:
    """To go on with something else deals with nothing; a word on it, mere talk and the same files changed again do."""
    first = user_turn("Draw it.", edited("drawing.py"), ran("dot -Tsvg a.dot", 1), reply=NOT_DONE)
    assert (NOT_DONE in texts(session(first, *later))) is is_open


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("Fine without a diagram.", False),
        ("Draw the diagram by hand and store it under docs.", False),
        ("Rename the parser and all its callers.", True),
    ],
)
def test_what_was_not_done_is_settled_by_a_later_session_about_it(prompt: str, is_open: bool) -> None:
    facts = session(user_turn("Draw it.", reply=NOT_DONE))
    assert (NOT_DONE in texts(facts, session(user_turn(prompt), at=60))) is is_open


def test_what_was_not_done_is_settled_when_its_command_succeeds() -> None:
    facts = session(user_turn("Train it.", ran("python3 model.py", 1), reply="I could not train the forest."))
    assert "I could not train the forest." in texts(facts)
    later = session(user_turn("Once more.", ran("python3 model.py")), at=60)
    assert texts(facts, later) == []


@pytest.mark.parametrize(
    ("question", "prompt"),
    [
        ("Should messages go by SMS or by e-mail?", "SMS. Add a class for it."),
        ("会员打几折？", "会员打九折。"),
        ("お土産の予算はいくらにしますか？", "お土産は五千円です。"),
        ("Welche Datenbank soll der Dienst verwenden?", "Als Datenbank nehmen wir PostgreSQL, sie läuft schon."),
        ("이름을 어떻게 정할까요?", "이름은 바다로 해 주세요."),
        ("أي منفذ يجب أن يستخدم الخادم؟", "استخدم منفذ 8000"),
    ],
)
def test_a_question_is_settled_by_a_later_prompt_on_its_subject(question: str, prompt: str) -> None:
    facts = session(user_turn("Start.", reply=question))
    assert texts(facts, session(user_turn("Zzz qqq."), at=60)) == [question]
    assert texts(facts, session(user_turn(prompt, ending=Ending.FAILED), user_turn("Go on."), at=60)) == []


def test_a_question_of_a_sub_agent_is_open_where_nobody_took_it_up() -> None:
    question = "Which shell do the drivers use?"
    parent = session(user_turn("Write docs.", reply="Both are done."))
    child = session(user_turn("Write usage.md.", reply=question), parent=parent.id)
    (point,) = find(parent, child)
    assert (point.text, point.detail) == (question, "asked by a sub-agent")
    told = replace(parent, turns=(user_turn("Write docs.", reply="All drivers use bash."),))
    told = replace(
        told,
        turns=tuple(replace(turn, replies=(replace(turn.replies[0], time=START + 99_000),)) for turn in told.turns),
    )
    assert texts(told, replace(child, session=replace(child.session, parent_id=told.id))) == []


@pytest.mark.parametrize(
    ("turn", "is_open"),
    [
        (user_turn("Plan the release.", reply="1. Tag it.\n\nShall I proceed?", agent="plan"), True),
        (
            user_turn("Planifie la livraison.", reply="1. Étiqueter.\n\nVoulez-vous que je commence ?", agent="plan"),
            True,
        ),
        (user_turn("Plan the release.", reply="1. Tag it.\n\nAnything else?", agent="plan"), False),
        (user_turn("Plan the release.", reply="1. Tag it.\n\nShall I proceed?", agent="build"), False),
        (user_turn("Plan the release.", edited("a.md"), reply="Shall I proceed?", agent="plan"), False),
    ],
)
def test_a_plan_that_waits_for_approval_is_open(turn: Turn, is_open: bool) -> None:
    assert bool(texts(session(turn))) is is_open
    assert texts(session(turn, user_turn("Yes."))) == []
    assert texts(session(turn), session(user_turn("Yes. And tag it."), at=60)) == []
    assert texts(session(turn), session(user_turn("Start with the release, la livraison."), at=60)) == []


@pytest.mark.parametrize(
    ("calls", "is_open"),
    [
        ([ran("cmake-gone .. && make", 127)], True),
        ([ran("cmake-gone .. && make", 127), ran("cc -o a a.c")], False),
        ([ran("pip install forest", 1)], True),
        ([ran("pip install forest", 1), ran("python3 model.py")], False),
        ([ran("sqlite3x a.db 'create table t(x)'", 1)], False),
        ([ran("curl -sf localhost:80/healthz", 7)], False),
        ([ran("docker compose up -d", 125)], True),
    ],
)
def test_a_failed_command_is_open_where_it_is_about_the_project(calls: list[Call], is_open: bool) -> None:
    assert (calls[0].command in texts(session(user_turn("Go.", *calls)))) is is_open


@pytest.mark.parametrize("command", ["cmake-gone .. && make", "npm test", "pip install forest"])
def test_a_missing_program_is_a_dead_end_if_the_user_went_on(command: str) -> None:
    facts = session(user_turn("Go.", ran(command, 127)), user_turn("Leave that."))
    assert texts(facts) == []


def test_a_failure_says_that_files_were_changed_since() -> None:
    failed = user_turn("Test.", ran("make lint", 2))
    (point,) = find(session(failed))
    assert failing.CHANGED_SINCE not in point.detail
    (point,) = find(session(failed, user_turn("Mend it.", edited("a.c"))))
    assert failing.CHANGED_SINCE in point.detail


@pytest.mark.parametrize(
    ("contents", "is_open"),
    [
        (("one", "two", "one"), False),  # back at what it was when the command passed
        (("one", "two", "three"), True),
        (("one", "two", None), True),  # what it is now is not known
        ((None, "two", "one"), True),
    ],
)
def test_a_failure_whose_files_are_back_at_what_passed_is_not_open(
    contents: tuple[str | None, ...], is_open: bool
) -> None:
    facts = session(
        user_turn("Check.", ran("make lint")),
        user_turn("Change.", edited("a.c"), ran("make lint", 2)),
        user_turn("No."),
    )
    failed = facts.turns[1].calls[1].started
    times = (START - 1, failed - 1, failed + 1)
    made = folder_facts.file(
        "a.c", None, *(folder_facts.revision(one, time=time) for one, time in zip(contents, times, strict=True))
    )
    assert [point.text for point in open_points.find([facts], setbacks.find([facts]), [made])] == (
        ["make lint"] if is_open else []
    )


def test_a_command_that_changed_folder_itself_settles_no_failure_elsewhere() -> None:
    facts = session(user_turn("Lint.", ran("cd core && make lint", 2), ran("cd web && make lint")))
    (point,) = find(facts)
    assert (point.text, point.detail) == ("make lint", "exit 2; in core")


def test_what_was_not_done_and_was_taken_up_later_is_not_open() -> None:
    facts = session(
        user_turn("Start.", reply="I skipped the Windows installer."), user_turn("Add the Windows installer.")
    )
    assert texts(facts) == []


def test_a_prompt_without_an_answer_is_open_until_it_is_asked_again() -> None:
    for ending, detail in (
        (Ending.OPEN, "no answer is recorded"),
        (Ending.STOPPED, "the answer was stopped"),
        (Ending.REFUSED, "the answer ended where a permission was refused"),
        (Ending.FAILED, "the answer failed: overloaded"),
    ):
        facts = session(user_turn("Build it.", ending=ending, reply="", error="overloaded"))
        (point,) = find(facts)
        assert (point.kind, point.detail) == (OpenKind.UNANSWERED, detail)
        assert texts(facts, session(user_turn("build  it."), at=60)) == []
        assert texts(session(*facts.turns, user_turn("Something else."))) == []


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("Go on with the manual for the neighbours.", False),
        ("The manual: keep it to a page.", False),
        ("Rename the parser and all of its callers.", True),
    ],
)
def test_a_stopped_request_is_settled_by_an_answered_prompt_on_it(prompt: str, is_open: bool) -> None:
    request = "Write a manual for the neighbours."
    stopped = session(user_turn(request, ending=Ending.STOPPED, reply="First, in"))
    assert (request in texts(stopped, session(user_turn(prompt), at=60))) is is_open
    assert request in texts(stopped, session(user_turn(prompt, ending=Ending.STOPPED), at=60))


def test_queued_prompts_are_all_open_until_answered() -> None:
    waiting = [
        user_turn("Add a footer.", ending=Ending.OPEN, reply=""),
        user_turn("Rename the page.", ending=Ending.OPEN, reply=""),
    ]
    assert sorted(texts(session(user_turn("Start."), *waiting))) == ["Add a footer.", "Rename the page."]
    assert texts(session(*waiting, user_turn("Go on."))) == []


def test_a_command_that_still_fails_is_open() -> None:
    assert texts(session(user_turn("Test.", ran("make test", 2), reply="See above."))) == ["make test"]
    assert texts(session(user_turn("Test.", ran("make test", 2), ran("make test")))) == []
    assert texts(session(user_turn("Test.", ran("make test", 2), ran("make test-all tests")))) == []
    assert texts(session(user_turn("Fail.", ran("echo a; exit 3", 3)))) == []
    assert texts(session(user_turn("Edit.", edited("a.py", CallStatus.FAILED)))) == []


def test_the_last_run_of_a_test_decides() -> None:
    turn = user_turn("Test.")
    failed = TestRun("pytest", passed=False, summary="1 failed", citation=Citation("ses_1", "msg_1", START))
    passed = TestRun("pytest", passed=True, summary="3 passed", citation=Citation("ses_1", "msg_2", START + 5))
    assert texts(replace(session(turn), tests=(failed,))) == ["pytest"]
    assert texts(replace(session(turn), tests=(failed,)), replace(session(turn, at=60), tests=(passed,))) == []


def test_a_pending_revert_is_open() -> None:
    turn = user_turn("Turn it off.", edited("a.py"), taken_back=True)
    revert = TakenBack(2_000_000, turn.prompt_id, prompts=("Turn it off.",), pending=True)
    (point,) = find(session(turn, reverts=[revert]))
    assert (point.kind, point.text) == (OpenKind.REVERT, "Turn it off.")
    assert find(session(turn, reverts=[replace(revert, pending=False)])) == []


def test_there_are_at_most_so_many_and_the_newest_stay() -> None:
    many = [
        session(user_turn(f"Build part{number}.", ending=Ending.OPEN, reply=""), at=10 * number)
        for number in range(open_points.MOST + 5)
    ]
    found = find(*many)
    assert len(found) == open_points.MOST
    assert found[0].text == f"Build part{open_points.MOST + 4}."


@given(st.lists(st.lists(TURNS, max_size=3), max_size=3), st.text(max_size=80))
def test_whatever_was_recorded_the_same_is_open_each_time(drawn: list[list[object]], said: str) -> None:
    facts = [
        session(*turns, user_turn(said, reply=said), at=100 * place, todos=[(said or "x", "pending")])
        for place, turns in enumerate(drawn)
    ]
    assert find(*facts) == find(*facts)
    for point in find(*facts):
        assert point.citation.quote in " ".join(said.split())


@given(st.text(max_size=300))
def test_sentences_are_stretches_of_the_text(text: str) -> None:
    source = " ".join(text.split())
    for sentence in sentences.split(text):
        assert sentence.text in source
        assert len(sentence.bare) == len(sentence.text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("See e.g. this. Use app.py here. It is v1.2 now.", ["See e.g. this.", "Use app.py here.", "It is v1.2 now."]),
        ("Fix this.\nTraceback (most recent call last):\nValueError: the name must not be empty\nERROR never do this\nThanks.", ["Fix this.", "Thanks."]),
        ("z. B. so. Dann das.", ["z. B. so.", "Dann das."]),
        ("第一。第二！第三？", ["第一。", "第二！", "第三？"]),
        ("- first point\n- second point", ["first point", "second point"]),
        ("short line\nnext line", ["short line", "next line"]),
        ("a line that is long enough to have been wrapped by an editor\nand goes on here", ["a line that is long enough to have been wrapped by an editor and goes on here"]),
        ("Text.\n```py\nno = 1\n```\n> quoted\n\n# Heading\n| a | b |\nEnd.", ["Text.", "End."]),
    ],
)  # fmt: skip
def test_prose_is_cut_into_sentences(text: str, pieces: list[str]) -> None:
    assert [sentence.text for sentence in sentences.split(text)] == pieces


@pytest.mark.parametrize(
    ("reply", "prompt", "is_open"),
    [
        ("Zod could not be installed. Keep it or drop it?", "Drop that, fewer parts are better.", False),
        ("Zod could not be installed. Keep it or drop it?", "Get rid of the thing, please.", False),
        ("The engraving could not be drawn. Shall I leave it?", "The invoice needs the tax number.", True),
    ],
)
def test_an_answer_to_a_question_deals_with_all_that_stands_beside_it(reply: str, prompt: str, is_open: bool) -> None:
    before = user_turn("Write an invoice with a tax number.", edited("invoice.html"))
    facts = session(
        before, user_turn("Make a label.", edited("label.svg"), reply=reply), user_turn(prompt, edited("a.html"))
    )
    assert any(text.endswith(("installed.", "drawn.")) for text in texts(facts)) is is_open


@pytest.mark.parametrize(
    ("question", "prompt", "is_open"),
    [
        ("Was the sensor broken on Monday?", "No newsletter for the members, they read the blog.", True),
        ("Was the sensor broken on Monday?", "The one at the pier, maybe, they replaced it.", False),
        ("Was the sensor broken on Monday?", "Get rid of it, please, I never liked it.", False),
        ("월요일에 센서가 고장이었나요?", "No newsletter for the members, they read the blog.", True),
        ("Was the sensor broken on Monday?", "Yes. And no newsletter for the members.", False),
        ("Do the members want a sensor of their own?", "No newsletter for the members, they read the blog.", False),
    ],
)
def test_a_question_stays_open_if_the_next_prompt_returns_to_earlier_work(
    question: str, prompt: str, is_open: bool
) -> None:
    before = session(user_turn("Write a newsletter for all members.", ending=Ending.STOPPED, reply="First"))
    facts = session(user_turn("Look at the outliers.", reply=f"There is one. {question}"), user_turn(prompt), at=60)
    assert (question in texts(before, facts)) is is_open


@pytest.mark.parametrize(
    ("request_", "prompt", "is_open"),
    [
        ("Send the alarm by SMS as well.", "Do not go on with the SMS, everybody reads the log anyway.", False),
        (
            "add paypal too",
            "forget paypal, not worth the fees. put the styles in a folder and drop the old page",
            False,
        ),
        ("多人数での動作も試してください。", "多人数の試験はもう要りません。一人用だけにします。", False),
        ("Haftalık özet de ekle.", "Haftalık özet gerekmez, bülten zaten her ay çıkıyor.", False),
        ("Додай оплату карткою.", "Оплату карткою поки відкладемо, спершу головна сторінка та меню.", False),
        ("添加微信支付。", "微信支付先不做了，把首页改成蓝色，再把标题放大一点。", False),
        ("Translate the app into Aragonese.", "Move the favourites to a package of their own, please.", True),
        ("Add a footer.", "Add a menu to the page of the shop, in green.", True),
        ("Update all packages on the NAS.", "Move the copy of the NAS to half past four, and tell the NAS so.", True),
    ],
)
def test_a_stopped_request_is_open_until_it_is_spoken_of_again(request_: str, prompt: str, is_open: bool) -> None:
    """In a word that hardly any other prompt has, or in several; a task's verb is none."""
    before = session(user_turn("Copy the pictures to the NAS."), user_turn("Which disks does the NAS have?"))
    stopped = session(user_turn(request_, ending=Ending.STOPPED, reply="First"), at=60)
    later = session(user_turn(prompt, edited("a.py")), at=90)
    assert (request_ in texts(before, stopped, later)) is is_open
    (setback,) = (one for one in setbacks.find([before, stopped, later]) if one.kind is SetbackKind.STOPPED)
    assert setback.outcome.startswith("spoken of again in A session: “") is not is_open


@pytest.mark.parametrize(
    ("todo", "later", "is_open"),
    [
        (
            "alarm when the level is too high",
            user_turn("Whenever it rises, write a line.", edited("src/alarm.rs")),
            False,
        ),
        ("雪", user_turn("雪も追加してください。", edited("snow.lua")), False),
        ("落ち葉", user_turn("秋には落ち葉のブロックを追加してください。", edited("leaves.lua")), False),
        ("编写公告文案", user_turn("请编写公告文案，语气轻松。", edited("notice.md")), False),
        ("alarm when the level is too high", user_turn("Whenever it rises, write a line."), True),
        ("newsletter text", user_turn("The newsletter comes out monthly, the limit is 40.", edited("clean.py")), True),
        ("雪", user_turn("秋の音を追加してください。", edited("sound.lua")), True),
        ("offline mode", user_turn("Every 300 seconds, to save the battery.", edited("widget.kt")), True),
    ],
)
def test_a_todo_is_taken_up_by_a_later_turn_that_changed_files(todo: str, later: Turn, is_open: bool) -> None:
    facts = session(user_turn("Build it.", LIST), todos=[(todo, "pending")])
    assert (todo in texts(facts, session(later, at=60))) is is_open


def test_a_todo_is_taken_up_by_a_later_session_of_that_title() -> None:
    facts = session(user_turn("Build it.", LIST), todos=[("VPN", "pending"), ("backup role", "pending")])
    later = replace(session(user_turn("I want to get in from outside.", edited("site.yml")), at=60), title="VPN")
    assert texts(facts, later) == ["backup role"]


def test_a_todo_is_taken_up_by_what_a_later_file_begins_with() -> None:
    facts = session(user_turn("Build it.", LIST), todos=[("weekly report", "pending")])
    later = session(user_turn("Go on with the next thing.", edited("src/sum7.py")), at=60)
    made = folder_facts.file(
        "src/sum7.py", None, folder_facts.revision("# The weekly report of the board.", time=START + 60_010)
    )
    assert texts(facts, later) == ["weekly report"]
    found = open_points.find(
        [facts, later], setbacks.find([facts, later]), [replace(made, path="/work/app/src/sum7.py")]
    )
    assert [point.text for point in found] == []


def test_what_an_answer_says_of_a_failure_stands_with_it() -> None:
    said = "The linter could not be run: ruby is missing."
    (point,) = find(session(user_turn("Lint.", ran("make lint ruby", 2), reply=f"{said} I wrote the docs.")))
    assert (point.kind, point.text) == (OpenKind.FAILING, "make lint ruby")
    assert f"“{said}”" in point.detail


def test_a_todo_that_an_answer_speaks_of_is_told_once() -> None:
    reply = "I have not written the newsletter text."
    facts = session(user_turn("Build it.", LIST, reply=reply), todos=[("newsletter text", "pending")])
    assert texts(facts) == [reply]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("The drawer test fails. It needs a browser and could not be run here.", None),
        ("The server listens on port 8080. I have not written a test for it.", None),
        ("No hay texto para la noche. No lo he añadido.", None),
        ("夜の文章がありません。それは作れませんでした。", None),
        ("The page is green. I could not reach the registry of the university.", "I could not reach the registry of the university."),
    ],
)  # fmt: skip
def test_a_sentence_that_refers_back_is_quoted_with_the_one_before(reply: str, text: str | None) -> None:
    (point,) = find(session(user_turn("Start.", edited("a.py"), reply=reply)))
    assert point.text == point.citation.quote == (text or reply)


def test_the_surest_points_come_first() -> None:
    turns = [
        user_turn("Build it.", LIST),
        user_turn("Test it.", ran("make test", 2), reply="I have not drawn the map. Which port should the server use?"),
    ]
    first = session(*turns, todos=[("newsletter text", "pending")])
    stopped = session(user_turn("Translate everything.", ending=Ending.STOPPED, reply="Fir"), at=60)
    assert [point.kind for point in find(first, stopped)] == [
        OpenKind.FAILING, OpenKind.NOT_DONE, OpenKind.QUESTION, OpenKind.TODO, OpenKind.UNANSWERED,
    ]  # fmt: skip


@pytest.mark.parametrize("row", unchecked_sentences.LEFT_TO_DO.splitlines())
def test_what_is_left_to_do_is_open_in_every_language(row: str) -> None:
    _, sentence = row.split(" ", 1)
    found = find(session(user_turn("Start.", edited("a.py"), reply=f"{sentence}\n\nx.")))
    assert [(point.kind, point.text) for point in found] == [(OpenKind.NOT_DONE, sentence)]


@pytest.mark.parametrize("row", unchecked_sentences.NOTHING_TO_DO.splitlines())
def test_what_is_how_the_program_works_is_not_open(row: str) -> None:
    _, sentence = row.split(" ", 1)
    assert texts(session(user_turn("Start.", edited("a.py"), reply=f"{sentence}\n\nx."))) == []
