"""What a text is about: its words without the commonest ones, in a form in which two texts can be compared."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from daemon.reconstitute.facts.language import cues, sentences

_STEM = 5
_KANA_ONLY = re.compile(r"[\u3040-\u309f]+")
"""Endings and particles of Japanese, which say nothing of the subject."""

_SMALL = frozenset(
    "again also been can could did does had has have here just may might need not now please still then there was were "  # noqa: SIM905
    "what when which will would yet "
    "aber bin bist bitte dafür damit dann dazu doch gibt hat haben hier jetzt kann kein keine können mal mir muss noch "
    "schon sein sich sind war waren was wenn werden wie wieder wird wurde "
    "alors aussi avez avons bien comme encore fait faut ici maintenant mais même mon peut peux pourquoi sans sera sont "
    "suis tout très votre "
    "ahora algo algún aquí aún cuando entonces eso está están fue han hay haz muy nada puede puedo queda quiero sea "
    "ser sigue sin solo sobre son también tengo tiene todavía todo "
    "adesso allora anche ancora anzi così dalla delle fare hanno hai già nella non ora però può qui quindi solo sulla "
    "agora ainda algo aqui depois está estão então fazer foi isso já mas muito não pode são também tem ter tudo você "
    "alleen dan daar eens had hebben heeft hier jij kan kun nog nu ook over wat wel werd worden wordt zal zou "
    "była było były bez czyli dalej jako jednak jeszcze jestem ich które który mam mnie może sobie tak teraz też tutaj "
    "было был была быть все всё где его ещё еще здесь или как мне можно надо нет нужно она оно они пока так также там "
    "тебе тем теперь тогда тоже уже чтобы это этот "
    "alla ännu bli blir blev då dem den dess dig din finns från går här hon igen inte kunde mig min mot nog nu också "
    "redan ser ska skulle till under upp vad var vara vill "
    "aby bude budou byl byla bylo být ještě jsme jsou jste která které mám mi mohu mohl nám nebo není pak proto tady "
    "tak také teď tím tohle "
    "ama artık ben biraz böyle bunu burada değil diye eğer henüz hâlâ hem ise olan oldu onu orada sadece sen siz şimdi "
    "sonra şu tüm üzere veya yani yine zaten "
    "або але був була було бути вже він вона все ще його коли мені можна немає потім така також там тепер тут цей "
    "أنا أنت أيضا الآن بعض بين تم ثم حتى ذلك سوف عند غير فقط قد كما لقد لكن لها له ليس ما منذ نحن هنا هناك هو".split()
)
"""More small words than the commonest: adverbs, auxiliaries and pronouns, which say nothing of the subject."""


def stems(text: str) -> frozenset[str]:
    """The beginnings of its words, so that "tests" and "test" are the same."""
    pieces = (piece for word in sentences.words(text) for piece in (word, *word.replace("/", ".").split(".")))
    return frozenset(_stem(piece) for piece in pieces if piece)


@cache
def _small() -> frozenset[str]:
    return cues.common() | _SMALL


@lru_cache(maxsize=8192)
def of(text: str) -> frozenset[str]:
    """The stems of its words without the small words of any language that we know."""
    words = (
        word for word in sentences.words(text) if word not in cues.common() | _SMALL and not _KANA_ONLY.fullmatch(word)
    )
    return stems(" ".join(words))


def _stem(word: str) -> str:
    return word[:_STEM].rstrip("s") or word
