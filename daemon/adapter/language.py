"""A user's words become the language they are in, and what we ourselves have to say in it.

By script where the script tells, else by the commonest small words: a guess, or none. A model is told the guess, and
sees the words; what the adapter says by itself is said in English where there is no guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is what a model calls it; `failure` is said when nothing else can be."""

    code: str
    name: str
    failure: str


_LANGUAGES = {
    one.code: one
    for one in (
        Language("en", "English", "I could not answer that just now. Please try again."),
        Language("de", "German", "Das konnte ich gerade nicht beantworten. Bitte versuche es noch einmal."),
        Language("fr", "French", "Je n’ai pas pu répondre pour le moment. Veuillez réessayer."),
        Language("es", "Spanish", "No he podido responder en este momento. Inténtalo de nuevo."),
        Language("it", "Italian", "Non sono riuscito a rispondere in questo momento. Riprova."),
        Language("pt", "Portuguese", "Não consegui responder agora. Tente novamente."),
        Language("nl", "Dutch", "Dat kon ik nu niet beantwoorden. Probeer het opnieuw."),
        Language("sv", "Swedish", "Jag kunde inte svara på det just nu. Försök igen."),
        Language("pl", "Polish", "Nie udało mi się teraz odpowiedzieć. Spróbuj ponownie."),
        Language("tr", "Turkish", "Şu anda yanıt veremedim. Lütfen tekrar deneyin."),
        Language("ru", "Russian", "Сейчас не получилось ответить. Попробуйте ещё раз."),
        Language("uk", "Ukrainian", "Зараз не вдалося відповісти. Спробуйте ще раз."),
        Language("ja", "Japanese", "今はお答えできませんでした。もう一度お試しください。"),
        Language("ko", "Korean", "지금은 답변하지 못했습니다. 다시 시도해 주세요."),
        Language("zh-Hant", "Traditional Chinese", "抱歉，我現在無法回答，請再試一次。"),
        Language("zh-Hans", "Simplified Chinese", "抱歉，我现在无法回答，请再试一次。"),
        Language("ar", "Arabic", "لم أتمكن من الإجابة الآن. يُرجى المحاولة مرة أخرى."),
        Language("he", "Hebrew", "לא הצלחתי לענות כרגע. נסו שוב."),
        Language("hi", "Hindi", "मैं अभी उत्तर नहीं दे सका। कृपया फिर से कोशिश करें।"),
        Language("th", "Thai", "ขออภัย ตอนนี้ตอบไม่ได้ โปรดลองอีกครั้ง"),
        Language("el", "Greek", "Δεν μπόρεσα να απαντήσω τώρα. Δοκιμάστε ξανά."),
    )
}
_HAN = "\u4e00-\u9fff"
_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]"), re.compile(f"[\u3040-\u30ff{_HAN}]")),
    ("ko", re.compile("[\uac00-\ud7a3]"), re.compile("[\uac00-\ud7a3\u1100-\u11ff]")),
    ("zh-Hans", re.compile(f"[{_HAN}]"), re.compile(f"[{_HAN}]")),
    ("uk", re.compile("[іїєґІЇЄҐ]"), re.compile("[\u0400-\u04ff]")),
    ("ru", re.compile("[\u0400-\u04ff]"), re.compile("[\u0400-\u04ff]")),
    ("he", re.compile("[\u0590-\u05ff]"), re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]"), re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]"), re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]"), re.compile("[\u0e00-\u0e7f]")),
    ("el", re.compile("[\u0370-\u03ff]"), re.compile("[\u0370-\u03ff]")),
)
"""Language, what gives it away, and all that it is written in."""
_TRADITIONAL = frozenset("開關燈廳現時間電視這個們說請對嗎應該還沒網會為麼幾點溫氣發動設備門聽見長東車買賣學習題問")
"""Frequent characters that simplified Chinese writes otherwise."""
_WORDS = {
    "en": "the is are what how please can you my of and to in it this that turn where when why do does was",
    "de": "der die das ist sind was wie bitte kannst du mein und zu im es mach schalte wo wann warum nicht ein licht",
    "fr": "le la les est sont que quoi comment peux tu mon et dans ce il où quand pourquoi pas une des allume du je",
    "es": "el la los es son qué cómo por favor puedes mi y en está dónde cuándo una las enciende del yo no luz",
    "it": "il la le è sono che cosa come puoi mio e nel dove quando perché non una accendi della gli luce per",
    "pt": "o os é são que como por favor pode meu e em está onde quando não uma do da ligue luz você",
    "nl": "de het is zijn wat hoe kun je mijn en in waar wanneer waarom niet een doe zet aan licht alsjeblieft",
    "sv": "är vad hur kan du min och i det var när varför inte en ett tänd på snälla jag den",
    "pl": "jest są co jak proszę możesz mój i w gdzie kiedy dlaczego nie to na włącz się czy",
    "tr": "bir bu ne nasıl lütfen ve için nerede neden değil mi mı aç kapat var ben misin",
}
_OWN_WORDS = {code: frozenset(words.split()) for code, words in _WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")


ENGLISH = _LANGUAGES["en"]


def language_of(texts: Iterable[str]) -> Language | None:
    """The language of the first of `texts` that tells; give a user's latest words first. None where none does."""
    codes = (_by_script(text) or _by_words(text) for text in texts)
    code = next((code for code in codes if code), "")
    return _LANGUAGES.get(code)


def _by_script(text: str) -> str:
    letters = sum(map(len, _WORD.findall(text)))
    for code, sign, script in _SCRIPTS:
        if not sign.search(text):
            continue
        # One character says as much as a word of letters; a foreign name in a sentence does not make its language.
        weight = 3 if code[:2] in ("ja", "ko", "zh") else 1
        if len(script.findall(text)) * weight * 2 >= letters:
            return "zh-Hant" if code == "zh-Hans" and _TRADITIONAL & set(text) else code
    return ""


def _by_words(text: str) -> str:
    words = _WORD.findall(text.lower())
    hits = {code: len(own.intersection(words)) for code, own in _OWN_WORDS.items()}
    best = max(hits, key=lambda code: hits[code])
    # Other languages have some of these words too: one is too little in a sentence.
    enough = 1 if len(words) < 4 else 2
    return best if hits[best] >= enough and list(hits.values()).count(hits[best]) == 1 else ""
