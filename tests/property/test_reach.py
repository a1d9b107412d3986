"""The law of reach: what a command changed without naming it plainly is never called proven.

A file is named by a value that only the run knew (a substitution, a loop, a list on standard input), from one of several
folders, and one of many programs writes to it. Each command really runs, over a git repository; then the recorded call
is replayed and compared as in test_scripts.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property.test_scripts import check
from tests.support.examples import examples

_REPOSITORY = (
    "git init -q -b main . && git config user.email a@example.org && git config user.name n && git add -A"
    " && git commit -qm one && git checkout -q -b other && echo other > a && git commit -qam two"
    " && git checkout -q main && echo dirty > a && echo dirty > d/x"
)
PLACES = [
    "{}",
    "cd d && {}",
    "cd d; {}",
    "(cd d/e && {})",
    "pushd d > /dev/null; {}",
    "cd $(echo d); {}",
    "bash -c 'cd d'; {}",
]
NAMED = [
    "$(echo {r}a)", '"$(echo {r})a"', "`echo {r}a`", "$ROOT/a", '"${{ROOT%/}}"/a', "{r}[a]", "{r}a", "$(realpath {r}a)",
    "${{NONE:-{r}a}}", '"$(git rev-parse --show-toplevel)/a"', "$(git ls-files :/a)", "{r}{{a,new}}",
]  # fmt: skip
GIVEN = [
    "F={n}; {w}", "for F in {n}; do {w}; done", "for F in {r}*; do [ -f $F ] && {w}; done", "read -r F <<< {n}; {w}",
    "echo {n} | while read -r F; do {w}; done", "set -- {n}; F=$1; {w}", "F=({n}); F=${{F[0]}}; {w}", "printf -v F %s {n}; {w}",
    "for F in a b.txt; do F={n}; {w}; done", "test -f nothing || F={n}; {w}", "export F={n}; bash -c '{w}'",
    "while F={n}; do {w}; break; done", "case x in x) F={n}; {w};; esac", "if F={n}; then {w}; fi", "F=b.txt; F={n} && {w} &\nwait",
]  # fmt: skip
WRITES = [
    "echo q > $F", 'echo q >> "$F"', "echo q | tee $F > /dev/null", "cp /etc/hostname $F", "rm -f $F", "sed -i s/^/q/ $F",
    "sort -o $F /etc/hostname", "dd if=/etc/hostname of=$F status=none", "truncate -s 0 $F", "install /etc/hostname $F",
    "perl -pi -e s/^/q/ $F", 'python3 -c "open(\\"$F\\", \\"w\\")"', "sed -n w$F /etc/hostname", "ln -sf /etc/hostname $F",
    "find $F -delete", "find . -maxdepth 0 -exec cp /etc/hostname $F \\;", "find . -maxdepth 0 -fprint $F", "awk 'BEGIN {{print > F}}' F=$F",
    "awk -v F=$F 'BEGIN {{print > F}}'", "git checkout -q other -- $F", "{{ echo q; }} > $F", "ls nothing 2> $F", "exec 3> $F; echo q >&3",
    "tar cf $F /etc/hostname 2> /dev/null", "git config -f $F x.y z", "curl -so $F file:///etc/hostname", "gzip -f $F; gzip -df $F.gz; echo q > $F",
]  # fmt: skip
WHOLE = [
    "find {r} -name a | xargs sed -i s/^/q/", "find {r} -name a -exec sed -i s/^/q/ {{}} +", "find {r} -name a -exec rm {{}} \\;",
    "find {r} -name a -print0 | xargs -0 rm -f", "find {r} -name a | xargs -I% cp /etc/hostname %", "find {r} -name a -delete",
    "find {r} -maxdepth 1 -name a -execdir cp /etc/hostname a \\;", "find -L {r} -maxdepth 1 -name a -exec sort -o {{}} /etc/hostname \\;",
    "git ls-files :/a --full-name | (cd {r}.; xargs sed -i s/^/q/)", "grep -rl dirty {r} --include=a | xargs perl -pi -e s/d/q/",
    "find {r} -name a -exec sh -c 'echo q > $0' {{}} \\;", "find {r} -name a | xargs -n1 sh -c 'echo q > $0'", "ls {r}a | xargs touch -d 2020-01-01 --; rm $(ls {r}a)",
    "git reset -q --hard", "git stash -q", "git checkout -qf other", "git restore :/", "git checkout -q -- :/a", "git -C . checkout -qf other", "git -C {r}. reset -q --hard",
    "git apply --directory= <<< ''; git merge -q --squash other; git checkout -qf other", "git checkout -q other -- ':(top)a'", "git clean -fdqx :/", "git rm -qf :/a",
    "eval 'echo q > {r}a'", "eval $(echo 'echo q > {r}a')", "tar cf t -C {r}. a; rm {r}a; tar xf t -C {r}.; echo q | tee {r}a > /dev/null", "bash <<< 'echo q > {r}a'",
    "python3 - {r}a <<'E'\nimport sys\nopen(sys.argv[1], 'w')\nE\n", "python3 -c 'import os; os.chdir(os.pardir); open(\"a\", \"w\")'; true",
    "echo {r}a | python3 -c 'import sys; open(sys.stdin.read().strip(), \"w\")'", "perl -e 'open(F, \">\", $ARGV[0])' {r}a", "echo {r}a | cpio -o > t 2> /dev/null; echo q > $(echo {r}a)",
]  # fmt: skip
CALLS = ["cd d && bash ../gen.sh", "cd d; sh ../gen.sh", "(cd d && . ../gen.sh)", "cd d && bash ../gen.sh; true"]
_BACK = {"{}": "./", "(cd d/e && {})": "../../", "bash -c 'cd d'; {}": "./"}


@st.composite
def lines(draw: st.DrawFn, back: str) -> str:
    """A command that writes to the file `a`, or deletes it, in a folder from which `back` leads to it."""
    if draw(st.booleans()):
        return draw(st.sampled_from(WHOLE)).format(r=back)
    named = draw(st.sampled_from(NAMED)).format(r=back)
    return draw(st.sampled_from(GIVEN)).format(r=back, n=named, w=draw(st.sampled_from(WRITES)).format())


@st.composite
def commands(draw: st.DrawFn) -> str:
    place = draw(st.sampled_from(PLACES))
    line = draw(lines(_BACK.get(place, "../")))
    return f"{_REPOSITORY}; ROOT=$(pwd -P); {place.replace('{}', line)}"


_QUIET = {"suppress_health_check": list(HealthCheck), "deadline": None}


@settings(max_examples=examples(60), **_QUIET)
@given(commands())
def test_what_a_command_reaches_without_naming_it_is_not_proven(command: str) -> None:
    check({}, command)


@settings(max_examples=examples(40), **_QUIET)
@given(lines("../"), st.sampled_from(CALLS), st.none() | st.integers(1, 2))
def test_what_a_script_reaches_without_naming_it_is_not_proven(line: str, call: str, stops: int | None) -> None:
    check({"gen.sh": f"ROOT=$(cd .. && pwd)\n{line}\n"}, call, stops_after=stops)
