"""Which files a command names that it may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.shell.names import named_files


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("echo x > a.txt", ["a.txt"]),
        ("echo x >> STATUS 2>&1", ["STATUS"]),
        ("sed -i 's/1/2/' v.py && printf 'a\\n=\\n' > README.rst", ["v.py", "README.rst"]),
        ("sed -n 1,5p v.py", []),
        ("rm old.py && mv README.md README.rst", ["old.py", "README.md", "README.rst"]),
        ("cat > s/dev.sh <<'EOF'\nrm x.py\necho > y.py\nEOF\nls -l s", ["s/dev.sh"]),
        ("cd docs && echo hi >> Makefile", ["docs/Makefile"]),
        ("cp config.json backup.json", ["backup.json"]),
        ("cat a.txt | tee b.txt | grep x", ["b.txt"]),
        ("python3 run.py in.csv", ["in.csv"]),
        ("python3 -c \"print('x.py')\"", []),
        ("black src/app.py tests", ["src/app.py"]),
        ("git checkout -- a.py Makefile", ["a.py", "Makefile"]),
        ("git diff a.py; git log -- a.py", []),
        ("find . -name '*.pyc'", []),
        ("curl -o out.json https://example.org/a.json", ["out.json"]),
        ("FOO=1 sudo tee /etc/hosts", ["/etc/hosts"]),
        ("echo x > $OUT; rm *.log; rm -rf build", ["build"]),
        ("ls > /dev/null 2>/dev/null", []),
        ("ls > /dev/shm/a.txt; rm /proc/a.txt /dev/a.txt", ["/dev/shm/a.txt"]),
        ("ruff check /w /w/..", []),
        ("rm -rf /w", ["/w"]),
        ("touch 'it is.txt'", ["it is.txt"]),
        ("echo 'unclosed > b.txt", ["b.txt"]),
        ("echo a \\\n > c.txt", ["c.txt"]),
    ],
)  # fmt: skip
def test_named_files(command: str, names: list[str]) -> None:
    assert named_files(command, "/w") == [name if name.startswith("/") else f"/w/{name}" for name in names]


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["rm", ">", "'", '"', "<<E", "\n", "E", "a.b", "&&", "cd", "$(", ")", "|"])).map(
        " ".join
    )
)
def test_it_reads_any_command(command: str) -> None:
    assert all(path.startswith("/") for path in named_files(command, "/w"))
