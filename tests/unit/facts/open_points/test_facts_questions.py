"""Which questions ask for something, and which prompts answer one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.open_points import questions

REAL = """\
Which port should I use?
And where shall I put the fixtures?
How should I name the export, and may I overwrite it?
For how long should I keep the backups?
Should I keep the old route, or drop it?
Welchen Port soll ich nehmen?
Und wie soll ich die Spalte nennen?
In welchem Ordner soll ich die Bilder ablegen?
Quel port dois-je utiliser ?
Dans quel dossier dois-je mettre les images ?
Combien de copies dois-je garder ?
¿Qué puerto debo usar?
¿En qué carpeta debo guardar las fotos?
Quale porta devo usare?
In quale cartella devo mettere le foto?
Che formato devo usare per le date?
Qual porta devo usar?
Em qual pasta devo guardar as fotos?
Welke poort moet ik gebruiken?
In welke map zal ik de foto's zetten?
Jaki port mam ustawić, i czy mam go zapisać?
Какой порт мне добавить в конфигурацию?
Який порт мені додати до конфігурації?
Vilken port ska jag använda?
Který port mám použít?
我可以用哪个端口？
需要我保留多少份备份？
どのポートを使いましょうか？
バックアップはいくつ残しましょうか？
어떤 포트를 사용할까요?
"""

OFFERS = """\
Shall I also explain what changed?
Would you like me to show how it works?
When the tests pass, shall I merge it?
What should I do next?
How can I help you further?
Is there anything else that I can do?
Soll ich dir zeigen, wie es geht?
Möchtest du, dass ich auch die Doku anpasse?
Was soll ich als nächstes tun?
Wie kann ich dir sonst noch helfen?
Veux-tu que je montre comment ça marche ?
Comment puis-je vous aider ?
Quand les tests passent, dois-je fusionner ?
¿Quieres que te muestre cómo funciona?
¿En qué más puedo ayudar?
Vuoi che ti mostri come funziona?
Come posso aiutare ancora?
Quer que eu mostre como funciona?
Como posso ajudar mais?
Zal ik laten zien hoe het werkt?
Hoe kan ik verder helpen?
Czy mam pokazać, jak to działa?
Хотите, чтобы я показал, как это работает?
Хочете, щоб я показав, як це працює?
Vill du att jag visar hur det fungerar?
Chcete, abych ukázal, jak to funguje?
要不要我看看还有什么问题？
需要我说明一下改了什么吗？
ほかに何かありますか？
テストも追加しましょうか？
사용법도 알려 드릴까요?
"""


@pytest.mark.parametrize("question", REAL.strip().splitlines())
def test_a_question_with_an_interrogative_or_a_choice_is_no_offer(question: str) -> None:
    (sentence,) = sentences.split(question)
    assert questions.is_real(sentence)


@pytest.mark.parametrize("question", OFFERS.strip().splitlines())
def test_an_offer_asks_for_nothing_whatever_it_offers_to_tell(question: str) -> None:
    (sentence,) = sentences.split(question)
    assert not questions.is_real(sentence)


ANSWERS = [
    ("Should the report go out weekly?", "Yes."),
    ("Should the report go out weekly?", "yes please"),
    ("Soll der Bericht wöchentlich kommen?", "Ja, mach das. Und benenne die Spalte um."),
    ("Soll der Bericht wöchentlich kommen?", "Nein danke"),
    ("每周都要发送报告吗？", "好的。再加一列。"),
    ("从星期几开始？", "周一"),
    ("Which day does the week begin with?", "Monday. And add an export."),
    ("Which day does the week begin with?", "On Mondays. And add an export."),
    ("Le texte s'adresse-t-il aux enfants ou aux parents ?", "Aux parents. Écris-le."),
    ("La settimana comincia di lunedì o di domenica?", "Di domenica. E aggiungi la stampa."),
    ("몇 시에 시작할까요?", "저녁 7시. 그리고 장소도 적어 줘."),
    ("何曜日に始めますか？", "はい、月曜日です。"),
    ("Which release should it name?", "Version 2.1. Then tag it."),
    ("Moet de kopie ook groter?", "Nee, die is groot genoeg."),
    ("¿Lo publico el lunes o el martes?", "El martes. Y añade la fecha."),
]
NO_ANSWERS = [
    ("Should the report go out weekly?", "Rename it."),
    ("Should the report go out weekly?", "Fix this bug."),
    ("Should the report go out weekly?", "Use tabs everywhere."),
    ("Should the report go out weekly?", "Add a page for the parents, please."),
    ("Soll der Bericht wöchentlich kommen?", "Lösche diesen Ordner."),
    ("每周都要发送报告吗？", "删除这个文件夹。"),
    ("何曜日に始めますか？", "予算.mdに詳しく書いて。"),
    ("何曜日に始めますか？", "地図を描いてください。"),
    ("Should the report go out weekly?", ""),
]


@pytest.mark.parametrize(("question", "prompt"), ANSWERS)
def test_a_prompt_that_begins_very_shortly_answers(question: str, prompt: str) -> None:
    assert questions.may_answer(prompt, question)


@pytest.mark.parametrize(("question", "prompt"), NO_ANSWERS)
def test_a_prompt_that_begins_with_an_order_answers_nothing(question: str, prompt: str) -> None:
    assert not questions.may_answer(prompt, question)


@given(st.text(max_size=80))
def test_an_opening_is_what_the_prompt_begins_with(prompt: str) -> None:
    assert prompt.strip().lstrip("¿¡").strip().startswith(questions.opening(prompt))
