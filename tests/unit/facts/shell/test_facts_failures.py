"""The line of an output that says what went wrong: what tools of all ecosystems print."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts.shell import failures

PRINTED = [
    # Python
    ("Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\nKeyError: 'x'\n", "KeyError: 'x'"),
    (('Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: a\n\nDuring handling of the above exception, another exception occurred:\n\n'
     'Traceback (most recent call last):\n  File "a.py", line 5, in <module>\nsqlite3.OperationalError: no such table: t\n'), "sqlite3.OperationalError: no such table: t"),
    ('Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    assert total() == 3\n           ^^^^^^^^^^^^\nAssertionError\n', "AssertionError: assert total() == 3"),
    ('Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nAssertionError\n', "AssertionError"),
    ('Traceback (most recent call last):\n  File "m.py", line 1, in <module>\n    import x\ndjango.core.exceptions.ImproperlyConfigured: set it\nmake: *** [Makefile:3: test] Error 1\n',
     "django.core.exceptions.ImproperlyConfigured: set it"),
    ("  File \"a.py\", line 3\n    def f(\n         ^\nSyntaxError: '(' was never closed\n", "SyntaxError: '(' was never closed"),
    (("F\n=== FAILURES ===\n____ test_add ____\n    def test_add():\n>       assert add(1) == 3\nE       assert 2 == 3\nE        +  where 2 = add(1)\n\ntests/test_a.py:4: AssertionError\n"
     "=== short test summary info ===\nFAILED tests/test_a.py::test_add - assert 2 == 3\n1 failed in 0.02s\n"), "assert 2 == 3"),
    ("ERROR: file or directory not found: tests/x.py\n\nno tests ran in 0.00s\n", "ERROR: file or directory not found: tests/x.py"),
    (("ERROR: Could not find a version that satisfies the requirement nosuch (from versions: none)\nERROR: No matching distribution found for nosuch\n\n"
     "[notice] A new release of pip is available: 24.0 -> 25.0\n[notice] To update, run: pip install --upgrade pip\n"),
     "ERROR: Could not find a version that satisfies the requirement nosuch (from versions: none)"),
    ("usage: app.py [-h] {add,list}\napp.py: error: the following arguments are required: name\n", "app.py: error: the following arguments are required: name"),
    ("Usage: app [OPTIONS]\nTry 'app --help' for help.\n\nError: No such option: --x\n", "Error: No such option: --x"),
    ("/usr/bin/python3: No module named pytest\n", "/usr/bin/python3: No module named pytest"),
    ("a.py:3: error: Incompatible types in assignment  [assignment]\nFound 1 error in 1 file (checked 3 source files)\n", "a.py:3: error: Incompatible types in assignment  [assignment]"),
    ("a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n[*] 1 fixable with the `--fix` option.\n", "a.py:1:8: F401 [*] `os` imported but unused"),
    ("would reformat a.py\n\nOh no! 💥 💔 💥\n1 file would be reformatted.\n", "would reformat a.py"),
    ("  × No solution found when resolving dependencies:\n  ╰─▶ Because nosuch was not found in the package registry, it cannot be used.\n",
     "× No solution found when resolving dependencies: Because nosuch was not found in the package registry, it cannot be used."),
    # Reports that close with a few words, in any language
    ("括弧が合わない: init.lua\n確認終了\n", "括弧が合わない: init.lua"),
    ("a.csv wird geprüft\nSpalte fehlt: PM10\nPrüfung beendet\n", "Spalte fehlt: PM10"),
    ("> Task :app:installDebug\nNo connected devices!\n", "No connected devices!"),
    ("klar\nfertig\n", "fertig"),
    ("sh scripts/pruefe.sh\n./a.yml:3:\tx\nTabulator gefunden\nmake: *** [Makefile:2: pruefen] Error 2\n", "Tabulator gefunden"),
    ("python3 gen.py a b\nmake: *** [Makefile:2: all] Error 1\n", ""),
    ("PYTHONPATH=. pytest -q\nmake: *** [Makefile:2: all] Error 1\n", ""),
    ("sh x.sh\n括弧が合わない\nmake: *** [Makefile:2: all] Error 1\n", "括弧が合わない"),
    # Node
    (("node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module './x'\nRequire stack:\n- /a/b.js\n    at Module._load (node:internal/modules:10:3)\n"
     "    at node:internal/main:1:2 {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n"), "Error: Cannot find module './x'"),
    ("/a/b.js:3\n  x();\n  ^\n\nTypeError: x is not a function\n    at Object.<anonymous> (/a/b.js:3:3)\n\nNode.js v20.20.2\n", "TypeError: x is not a function"),
    ("node:assert:126\n\nAssertionError [ERR_ASSERTION]: 3 == 4\n    at /a/t.js:1:2 {\n  generatedMessage: true\n}\n\nNode.js v18.1.0\n", "AssertionError [ERR_ASSERTION]: 3 == 4"),
    ('npm error Missing script: "tst"\nnpm error\nnpm error Did you mean this?\nnpm error   npm test # run the "test" script\nnpm error A complete log of this run can be found in: /x/2026-debug-0.log\nnpm notice\n',
     'npm error Missing script: "tst"'),
    ("\n> shop@1.0.0 build\n> tsc\n\nsrc/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 2\n",
     "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'."),
    ("src/a.ts:3:7 - error TS2304: Cannot find name 'x'.\n\n3 let a = x;\n          ~\n\nFound 1 error in src/a.ts:3\n", "src/a.ts:3:7 - error TS2304: Cannot find name 'x'."),
    ("\n/a/b.js\n  3:5  error  'x' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)\n", "3:5  error  'x' is not defined  no-undef"),
    ("FAIL src/a.test.js\n  ● adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 3\n    Received: 4\n\nTests:       1 failed, 1 total\nRan all test suites.\n", "FAIL src/a.test.js"),
    ("TAP version 13\nnot ok 1 - adds\n  ---\n  duration_ms: 1\n  ...\n# fail 1\n", "not ok 1 - adds"),
    (" ERR_PNPM_NO_SCRIPT  Missing script: tst\n", "ERR_PNPM_NO_SCRIPT  Missing script: tst"),
    ("yarn run v1.22.0\nerror Couldn't find a package.json file in \"/a\"\ninfo Visit https://yarnpkg.com/en/docs/cli/run for documentation about this command.\n", "error Couldn't find a package.json file in \"/a\""),
    ("Error: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1:2)\n", "Error: listen EADDRINUSE: address already in use :::3000"),
    # Rust, Go, C
    (("warning: unused variable: `a`\n --> src/main.rs:2:9\n\nerror[E0425]: cannot find value `x` in this scope\n --> src/main.rs:3:5\n  |\n3 |     x\n\nerror: aborting due to 1 previous error\n\n"
     'For more information about this error, try `rustc --explain E0425`.\nerror: could not compile `gauge` (bin "gauge") due to 1 previous error\n'), "error[E0425]: cannot find value `x` in this scope"),
    ("thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3 but the index is 7\nstack backtrace:\n   0: rust_begin_unwind\n  13: <unknown>\nnote: run with `RUST_BACKTRACE=1`\n",
     "thread 'main' panicked at src/main.rs:4:5: index out of bounds: the len is 3 but the index is 7"),
    (("running 1 test\ntest t ... FAILED\n\nfailures:\n\n---- t stdout ----\nthread 't' panicked at src/lib.rs:9:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n\ntest result: FAILED. 0 passed; 1 failed\n\n"
     "error: test failed, to rerun pass `--lib`\n"), "thread 't' panicked at src/lib.rs:9:9: assertion `left == right` failed"),
    ("error: unexpected argument '--x' found\n\nUsage: gauge [OPTIONS]\n\nFor more information, try '--help'.\n", "error: unexpected argument '--x' found"),
    ("# example.org/a\n./main.go:4:2: undefined: x\n", "./main.go:4:2: undefined: x"),
    ("panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:8 +0x1d\nexit status 2\n", "panic: runtime error: index out of range [5] with length 3"),
    ("--- FAIL: TestAdd (0.00s)\n    a_test.go:8: got 1, want 2\nFAIL\nFAIL\texample.org/a\t0.003s\nFAIL\n", "--- FAIL: TestAdd (0.00s)"),
    ("go: go.mod file not found in current directory or any parent directory; see 'go help modules'\n", "go: go.mod file not found in current directory or any parent directory; see 'go help modules'"),
    ("a.c: In function 'main':\na.c:3:5: error: 'x' undeclared (first use in this function)\na.c:3:5: note: each undeclared identifier is reported only once\nmake: *** [Makefile:2: a] Error 1\n",
     "a.c:3:5: error: 'x' undeclared (first use in this function)"),
    ("/usr/bin/ld: /tmp/a.o: in function `main':\na.c:(.text+0x9): undefined reference to `foo'\ncollect2: error: ld returned 1 exit status\n", "a.c:(.text+0x9): undefined reference to `foo'"),
    ("a.c:1:10: fatal error: x.h: No such file or directory\n    1 | #include <x.h>\n      |          ^~~~~\ncompilation terminated.\n", "a.c:1:10: fatal error: x.h: No such file or directory"),
    ('CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find a package configuration file provided by "Qt6".\n\n-- Configuring incomplete, errors occurred!\n',
     'CMake Error at CMakeLists.txt:3 (find_package): Could not find a package configuration file provided by "Qt6".'),
    ("Segmentation fault (core dumped)\n", "Segmentation fault (core dumped)"),
    # JVM, .NET
    ('Exception in thread "main" java.lang.IllegalStateException: start\n\tat a.Main.main(Main.java:3)\nCaused by: java.io.IOException: disk full\n\tat a.B.c(B.java:9)\n\t... 1 more\n', "Caused by: java.io.IOException: disk full"),
    ("A.java:5: error: cannot find symbol\n    foo();\n    ^\n  symbol:   method foo()\n1 error\n", "A.java:5: error: cannot find symbol"),
    ("> Task :test FAILED\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':test'.\n> There were failing tests.\n\n* Try:\n> Run with --stacktrace option to get the stack trace.\n\nBUILD FAILED in 1s\n",
     "What went wrong: Execution failed for task ':test'."),
    ("[INFO] BUILD FAILURE\n[ERROR] COMPILATION ERROR : \n[ERROR] /a/B.java:[3,5] cannot find symbol\n[ERROR] Failed to execute goal x\n[ERROR] -> [Help 1]\n[ERROR] \n[ERROR] To see the full stack trace of the errors, re-run Maven\n",
     "[ERROR] /a/B.java:[3,5] cannot find symbol"),
    ("Program.cs(3,5): error CS0103: The name 'x' does not exist in the current context [/a/a.csproj]\n\nBuild FAILED.\n    0 Warning(s)\n    1 Error(s)\n\nTime Elapsed 00:00:01\n",
     "Program.cs(3,5): error CS0103: The name 'x' does not exist in the current context [/a/a.csproj]"),
    # Ruby, PHP, Elixir, Haskell
    ("a.rb:3:in `f': undefined method `x' for nil:NilClass (NoMethodError)\n\tfrom a.rb:7:in `<main>'\n", "a.rb:3:in `f': undefined method `x' for nil:NilClass (NoMethodError)"),
    ("PHP Fatal error:  Uncaught Error: Call to undefined function x() in /a/b.php:3\nStack trace:\n#0 {main}\n  thrown in /a/b.php on line 3\n", "PHP Fatal error:  Uncaught Error: Call to undefined function x() in /a/b.php:3"),
    ("** (UndefinedFunctionError) function A.b/0 is undefined\n    a.ex:3: A.c/1\n", "** (UndefinedFunctionError) function A.b/0 is undefined"),
    ("Main.hs:3:5: error:\n    • Variable not in scope: x\n", "Main.hs:3:5: error: • Variable not in scope: x"),
    # shells, git, make, packages, containers, databases
    ("bash: line 1: frobnicate: command not found\n", "bash: line 1: frobnicate: command not found"),
    ("sh: 1: frobnicate: not found\nnpm ERR! code 127\n", "sh: 1: frobnicate: not found"),
    ("cat: x.txt: No such file or directory\ndone\n", "cat: x.txt: No such file or directory"),
    ("make: *** No rule to make target 'x'.  Stop.\n", "make: *** No rule to make target 'x'.  Stop."),
    ("sh verify.sh\nDIFFERENT\nmake: *** [Makefile:4: verify] Error 1\n", "DIFFERENT"),
    ("moisture: zu trocken\nmake: *** [Makefile:2: test] Error 1\n", "moisture: zu trocken"),
    ("./verify.sh\nThe tap is still open.\nmake: *** [Makefile:4: verify] Error 1\n", "The tap is still open."),
    ("./verify.sh out.txt\nmake: *** [Makefile:4: verify] Error 1\n", ""),
    ("CFLAGS=-O2 ./b a.\nmake: *** [Makefile:4: verify] Error 1\n", ""),
    ("mkdir -p out\ncp a b\nmake: *** [Makefile:3: all] Error 1\n", ""),
    ("npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\n", ""),
    ("error: rustup could not choose a version of cargo to run\n   0: rustup::main\n  13: <unknown>\n", "error: rustup could not choose a version of cargo to run"),
    ("E: Unable to locate package nosuch\n", "E: Unable to locate package nosuch"),
    ("fatal: not a git repository (or any of the parent directories): .git\n", "fatal: not a git repository (or any of the parent directories): .git"),
    ("To github.com:a/b.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'github.com:a/b.git'\nhint: Updates were rejected because the remote contains work\n", "! [rejected]        main -> main (fetch first)"),
    ('#8 [3/4] RUN npm ci\n#8 1.203 npm ERR! code EUSAGE\n#8 ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1\n------\nERROR: failed to solve: process did not complete\n',
     '#8 ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1'),
    ('psql:a.sql:3: ERROR:  relation "orders" does not exist\n', 'psql:a.sql:3: ERROR:  relation "orders" does not exist'),
    ("ERROR 1146 (42S02) at line 1: Table 'a.b' doesn't exist\n", "ERROR 1146 (42S02) at line 1: Table 'a.b' doesn't exist"),
    ("  % Total    % Received\n\r  0     0\r  0     0\ncurl: (7) Failed to connect to localhost port 80: Connection refused\n", "curl: (7) Failed to connect to localhost port 80: Connection refused"),
    ("╷\n│ Error: Missing required argument\n│ \n│   on main.tf line 3\n╵\n", "Error: Missing required argument"),
    ('Error from server (NotFound): pods "x" not found\n', 'Error from server (NotFound): pods "x" not found'),
    ("This is pdfTeX\n! LaTeX Error: File `x.sty' not found.\nType X to quit\n", "! LaTeX Error: File `x.sty' not found."),
    ("unknown flag: --x\nSee 'docker run --help'.\n", "unknown flag: --x"),
    # other languages than English, and scripts of a project's own
    ("bash: Zeile 1: frob: Kommando nicht gefunden.\n", "bash: Zeile 1: frob: Kommando nicht gefunden."),
    ("Lese Daten\nFehler: Lager 3 fehlt\nEnde\n", "Fehler: Lager 3 fehlt"),
    ("Erreur : stock négatif\nfin\n", "Erreur : stock négatif"),
    ("読み込み中\nエラー: 在庫がありません\n", "エラー: 在庫がありません"),
    ("checking\nstock is too low\n", "stock is too low"),
    ("0 errors, 0 warnings\nstock is too low\n", "stock is too low"),
    ("a\nb\n====\n", "b"),
    ("====\n", "===="),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "told"), PRINTED)
def test_the_line_that_says_what_went_wrong(printed: str, told: str) -> None:
    assert failures.error_line(printed) == told


def test_colours_do_not_hide_it() -> None:
    assert (
        failures.error_line("\x1b[31merror\x1b[0m: no such command: `x`\n\nhint: see `cargo --list`")
        == "error: no such command: `x`"
    )


@given(st.lists(st.sampled_from([one for one, _ in PRINTED]) | st.text(max_size=80), max_size=4).map("\n".join))
def test_any_output_gives_one_line_of_it(printed: str) -> None:
    told = failures.error_line(printed)
    assert len(told.splitlines()) <= 1
    assert failures.error_line(told) == told or told.endswith(":")


@pytest.mark.parametrize(
    "piece", ["a", "a ", "error", ": ", "a.b:1:", "E   ", 'File "', "│ ", "Error: ", "\r", "x.", "[", "npm "]
)
def test_a_hostile_output_costs_little_time(piece: str) -> None:
    begun = time.process_time()
    failures.error_line(piece * 200_000)
    failures.error_line((piece * 20 + "\n") * 20_000)
    assert time.process_time() - begun < 30
