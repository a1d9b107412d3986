"""Asked of a target that holds programs."""

from __future__ import annotations

from daemon.model import Kind
from daemon.reconstitute.questions.question import Question

RUN = Question(
    id="run",
    heading="How to run it",
    ask=(
        "How is it installed, started and tested? One statement for each step, in the order a newcomer needs them, "
        "with the exact command, the folder it is run in, and what it needs first. Prefer commands that are recorded "
        "to have succeeded, and say which ones failed."
    ),
    queries=("how to run start install test it", "run the tests", "command to start the server"),
    cues=(
        (r"\b(run|start|launch|install|deploy|serve|execute|test)(s|ed|ning|ing)? (it|with|by|the|via|using)\b", 1.5),
        (r"\b((npm|pnpm|yarn|bun) (run|install|start|test|i)\b|npx \w|pip3? install|uv (run|sync))", 2.0),
        (r"\b(python3? (-m |\S+\.py)|pytest\b|flask run|cargo (run|build|test)|go (run|build|test)|docker \w)", 2.0),
        (r"`(make|\./[\w./-]+)( [\w-]+)?`|(^|\s)\./[\w/-]+\.sh\b", 2.0),
        (r"\b(usage|listens? on|port \d{2,5}|environment variables?|requirements?|prerequisites?)\b", 1.4),
        (r"\bhttps?://(localhost|127\.0\.0\.1)", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 0.8, Kind.REASONING: 0.4, Kind.TASK: 0.4},
    favours="late",
    commands=True,
)
STRUCTURE = Question(
    id="structure",
    heading="Structure",
    ask=(
        "How is it organised? One statement for each part (folder, module, service, table): its path, what it does, "
        "and which other parts it calls or is called by. Begin with the part where the work starts."
    ),
    queries=("structure architecture layout modules components", "which file contains which part"),
    cues=(
        (r"\b(structure|architecture|layout|organi[sz]ed|layers?|components?|modules?|packages?)\b", 1.2),
        (r"\b(lives?|sits?|stands?|goes|placed|kept|defined|stored) (in|under|beneath)\b", 1.6),
        (r"\b(consists? of|depends on|calls|imports|contains|split into|talks to|wraps)\b", 1.2),
        (r"[\w/-]+\.\w{1,5}\W{0,3}(:|[-–—]|is|has|holds|contains)\s", 1.2),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.0, Kind.REASONING: 0.7, Kind.TASK: 0.7},
)
CONFIGURATION = Question(
    id="configuration",
    heading="Configuration",
    ask=(
        "Which settings, environment variables, ports, credentials (by name, never by value) and outside services does "
        "it use? One statement for each: its exact name, where it is set, what it controls, and its value or default. "
        "Where it was changed: from what to what, and why."
    ),
    queries=(
        "configuration setting environment variable default",
        "port host service url database connection",
        "changed the setting from to because",
    ),
    cues=(
        (r"\b(environment variables?|env vars?|dotenv|\.env\b|config(uration)? (file|key|option|value)s?)", 2.2),
        (r"(?-i:\b[A-Z][A-Z0-9]+(_[A-Z0-9]+)+\b)", 1.6),
        (r"\b(ports?|localhost|127\.0\.0\.1|listens? on|bind(s)? to|hostname|base[_ ]?url|endpoint)\b", 1.3),
        (r"[\w-]+\.(toml|ya?ml|ini|cfg|conf|env|properties|service)\b", 1.3),
        (r"\b(settings?|configur\w+|defaults? (to|is|was|value)|timeouts?|feature flags?|api keys?)\b", 1.2),
        (r"\b(set|change|raise|lower|increase|decrease|switch)(d|ed|s)? .{0,40}?\b(to|from)\b", 0.8),
    ),
    kinds={Kind.ANSWER: 1.2, Kind.PROMPT: 1.2, Kind.REASONING: 0.7, Kind.TASK: 0.5},
    favours="late",
)
