"""Asked of a target that holds mostly documents."""

from __future__ import annotations

from daemon.model import Kind
from daemon.reconstitute.questions.question import Question

SAYS = Question(
    id="says",
    heading="What it says",
    ask=(
        "What do these documents say? One statement for each document or chapter: its path, its subject, and its main "
        "claim, result or instruction. Say which document builds on which."
    ),
    queries=("summary main argument of the document", "chapter section describes explains", "conclusion result"),
    cues=(
        (r"\b(summar(y|i[sz]e\w*)|abstract|introduction|conclusions?|overview|main (point|claim|argument)s?)\b", 1.8),
        (r"\b(chapters?|sections?|paragraphs?|documents?|articles?|reports?|notes?|drafts?|slides?|letters?)\b", 1.2),
        (r"\b(says?|states?|argues?|explains?|describes?|covers?|shows? that|is about|deals with)\b", 1.3),
        (r"[\w/-]+\.(md|rst|txt|tex|docx?|odt|adoc|org)\b", 1.0),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.1, Kind.REASONING: 0.6, Kind.TASK: 0.7},
)
READERS = Question(
    id="readers",
    heading="For whom",
    ask=(
        "For whom was it written, and what for? One statement each for its readers, the occasion or deadline, where it "
        "was to be published or sent, and what was asked of its style, language and length."
    ),
    queries=("audience readers written for", "publish send submit deadline", "tone style language length"),
    cues=(
        (r"\b(audience|readers?|readership|recipients?|reviewers?|beginners?|students?|customers?|colleagues?)\b", 2.0),
        (r"\b(written|meant|intended|aimed|addressed) (for|at|to)\b", 2.0),
        (r"\b(publish\w*|submit\w*|submission|deadline|send (it|this|them) to|hand(ed)? in|print\w*)\b", 1.3),
        (r"\b(tone|style|formal|informal|shorter|longer|words long|pages long|translat\w+|plain language)\b", 1.2),
    ),
    kinds={Kind.PROMPT: 1.4, Kind.ANSWER: 1.0, Kind.REASONING: 0.5, Kind.TASK: 0.8},
    favours="early",
)
STATE = Question(
    id="state",
    heading="In what state it is",
    ask=(
        "In what state is each document? One statement for each: finished, in revision, a draft or only an outline; "
        "what the last change to it was; and what was still to be written, checked or agreed upon."
    ),
    queries=("draft finished revision final version", "still to write missing section", "last change to the document"),
    cues=(
        (r"\b(drafts?|final (version|draft)|finished|complete(d)?|revis(ed|ion|ing)|proof ?read\w*|outlines?)\b", 1.8),
        (r"\b(still (to|need\w*|missing)|not yet|to be (written|added|checked)|placeholder|remaining|left to)\b", 1.8),
        (r"(?-i:\b(TODO|TBD|FIXME|WIP)\b)", 2.0),
        (r"\b(added|rewrote|rewritten|updated|shortened|expanded|corrected) (the|an?|this|chapter|section)\b", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.1, Kind.REASONING: 0.6, Kind.TASK: 0.5},
    favours="late",
)
