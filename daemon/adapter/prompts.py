"""The prompts of a turn: how to decide, in what form and language to answer, at what time; a tool the user named.

The language is a guess from the script or the commonest small words, or none. The prompt names the guess; what the
adapter says by itself is in English where there is no guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from daemon.adapter import schema
from daemon.adapter.model_request import Form
from daemon.chat import ToolCall
from daemon.chat.action_text import objects_in
from daemon.chat.actions import instructions
from daemon.errors import BadReply
from daemon.model import Json

_DECIDING = """How to decide on a turn:
- If the last message is the result of a tool and it answers what the user wants, answer from it. If it does not, call \
another tool.
- If the user wants something done, call the tool that does it, even when it was done before: what a result said then \
need not be so any more, since others can change it too.
- If the user wants to know how something is now, call the tool that tells. Do not conclude it from older messages.
- Take arguments from the user's words and from what is said above, and nowhere else. If one is missing or it is not \
clear what is meant, ask the user with a chat.
- A greeting, thanks or small talk is a chat. In doubt between doing something and talking, talk.
- Never say that something was done unless a result says so.
For example, a greeting: {"action": "chat", "content": "Hello! What can I do for you?"}
And after the result "front door: open", when the user asked whether the door is open: \
{"action": "answer", "content": "Yes, the front door is open."}"""

_FROM_RESULT = "Answer the user's last question from the result of the tool that stands above."
_PLAIN = "Answer in plain words: no JSON, no tool call."
_NOTHING_DONE = "You cannot do anything in this turn, so do not say that you did."
_NOT = re.compile(
    r"\b(?:no|not|never|don['’]?t|without|instead of|nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|sin|não|nem|non|mai|"
    r"senza|niet|geen|inte|nie|bez|не|нет|без|değil)\b|不|別|别|沒|没|ない|않|말고",
    re.IGNORECASE,
)
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


def system(
    client: str, tools: Sequence[Json], form: Form, language: Language | None, *, must_call: bool = False
) -> str:
    """The system text: the client's own first, then ours. With tools, the reply is one JSON object."""
    parts = [client.strip()]
    if tools:
        parts += [instructions(tools, only_calls=True)] if must_call else [instructions(tools), _DECIDING]
    guess = f" That seems to be {language.name}." if language else ""
    parts.append(f"Write what the user reads in the language of the user's last message.{guess}")
    if form and not (tools and must_call):
        subject = "The content of an answer or chat" if tools else "The whole reply"
        parts.append(f"{subject} must be {_form(form)}, without code fences and without a word around it.")
    parts.append(f"The time is {datetime.now().astimezone():%A, %Y-%m-%d %H:%M (UTC%z)}.")
    return "\n\n".join(part for part in parts if part)


def _form(form: Form) -> str:
    if isinstance(form, str):
        return "one JSON object"
    return f"JSON that follows this JSON schema: {json.dumps(form, ensure_ascii=False)}"


def plainly(form: Form, *, after_result: bool) -> str:
    """What is said to a model that is to answer in words, since it failed to write an object."""
    parts = [_FROM_RESULT if after_result else "", "" if form else _PLAIN, _NOTHING_DONE]
    return " ".join(part for part in parts if part)


def correction(error: BadReply) -> str:
    """What is said to a model whose reply could not be used."""
    return f"That reply could not be used: {error}. Write the same turn again, in the form that is asked for."


def formed(text: str, form: Form) -> str:
    """The answer's text in the form that the client asked for, its fences taken off.

    Raises:
        BadReply: it has another form.
        BadRequest: the form is a schema that cannot be followed.
    """
    if not form:
        return text
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].rpartition("```")[0].strip() or bare
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"the content must be JSON and nothing else, and is not: {error}") from None
    if isinstance(form, dict):
        schema.check(value, form)
    return bare


def named_tool(text: str, tools: Sequence[Json]) -> ToolCall | None:
    """The call that `text` asks for by the tool's very name; None where there is the least doubt.

    One name and no negation; the arguments are a JSON object in the text, else there must be none that is required.
    """
    matches = [tool["function"] for tool in tools if _names(text, str(tool["function"]["name"]))]
    if len(matches) != 1 or _NOT.search(text):
        return None
    objects = objects_in(text)
    if len(objects) > 1:
        return None
    arguments = objects[0] if objects else {}
    parameters = matches[0].get("parameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    required, properties = parameters.get("required"), parameters.get("properties")
    required = required if isinstance(required, list) else []
    properties = properties if isinstance(properties, dict) else {}
    if any(name not in arguments for name in required) or any(name not in properties for name in arguments):
        return None
    return ToolCall(matches[0]["name"], arguments)


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


@dataclass(frozen=True, slots=True)
class Language:
    """`name` is what a model calls it; `failure` is said when nothing else can be."""

    code: str
    name: str
    failure: str


_LANGUAGES = {
    entry.code: entry
    for entry in (
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
    hits = {code: len(function_words.intersection(words)) for code, function_words in _OWN_WORDS.items()}
    best = max(hits, key=lambda code: hits[code])
    # Other languages have some of these words too: one is too little in a sentence.
    enough = 1 if len(words) < 4 else 2
    return best if hits[best] >= enough and list(hits.values()).count(hits[best]) == 1 else ""
