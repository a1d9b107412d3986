"""What a folder is: in the words of its README, its manifest, or the prompt that began it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files import Grade
from daemon.files.content import Fragments, Run
from daemon.files.history import REVERTED
from daemon.model import Operation
from daemon.reconstitute.facts import purposes
from daemon.reconstitute.recover import State
from tests.support.examples import examples
from tests.unit.facts.folder_facts import START, TARGET, call, file, revision, session, turn


def _texts(*files, sessions=()):
    return [(one.text, one.origin) for one in purposes.find(TARGET, sessions, files)]


READMES = [
    ("README.md", "# todo\n\nA tiny todo service.\n", "A tiny todo service."),
    ("readme.markdown", "todo\n====\n\nKeeps lists. Shares them too. And more.\n", "Keeps lists. Shares them too."),
    ("README.md", "[![build](https://x/b.svg)](https://x)\n![logo](l.png)\n\n# X\n\n**X** parses _logs_ fast.", "X parses logs fast."),
    ("README.md", "---\ntitle: X\n---\n# X\n\n<!-- TODO\nmany lines -->\n\nReads mails aloud for you.\n", "Reads mails aloud for you."),
    ("README.md", '<h1 align="center">Wetter</h1>\n<p align="center"><b>Zeigt das Wetter im Terminal.</b></p>', "Zeigt das Wetter im Terminal."),
    ("README.md", "# X\n\n- [Install](#install)\n- [Use](#use)\n\nMeasures soil moisture on a Pi.\n", "Measures soil moisture on a Pi."),
    ("README.md", "# X\n\n[English](a.md) | [中文](b.md) | [Deutsch](c.md)\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\n> [!WARNING]\n> Not for production.\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\n> Measures soil moisture on a Pi.\n", "Measures soil moisture on a Pi."),
    ("README.md", "# X\n\n```sh\nnpm install that thing\n```\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\n## Überblick\n\nSammelt Rezepte der Familie.\n", "Sammelt Rezepte der Familie."),
    ("README.md", "# X\n\n## What is X?\n\nAn index of maps.\n", "An index of maps."),
    ("LIESMICH.md", "# Rezepte\n\nSammlung der Familienrezepte, z. B. Brot inkl. Sauerteig. Nach Jahreszeit sortiert.", "Sammlung der Familienrezepte, z. B. Brot inkl. Sauerteig. Nach Jahreszeit sortiert."),
    ("README.md", "# Facture\n\nUn petit outil pour gérer les factures d’une association.\n", "Un petit outil pour gérer les factures d’une association."),
    ("README.zh-CN.md", "# 天气\n\n一个显示天气预报的命令行工具。支持多个城市。\n", "一个显示天气预报的命令行工具。支持多个城市。"),
    ("ПРОЧТИ.txt", "Склад\n\nПрограмма учёта товаров на складе. Работает без сети.", "Программа учёта товаров на складе. Работает без сети."),
    ("README.rst", "====\nflux\n====\n\n.. image:: x.png\n   :alt: no\n\n|build| |docs|\n\n*flux* moves ``csv`` files to `S3 <https://s3>`_.\n\nInstall\n-------\n\nRun it.\n", "flux moves `csv` files to S3."),
    ("README.adoc", "= Orbit\nJane Doe <jane@x.org>\nv1.0\n:toc:\n\nimage::x.png[]\n\nComputes link:http://x[orbits] of satellites.\n\n== Usage\n\nNo.\n", "Computes orbits of satellites."),
    ("README.org", "#+TITLE: Garten\n#+AUTHOR: me\n\nPläne für den [[http://x][Garten]] und das =Beet=.\n\n* Heute\nnichts\n", "Pläne für den Garten und das `Beet`."),
    ("README", "# X\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\n[Svenska](README.sv.md) | English\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\nDeutsch · English · Français\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\nLies das auf [Deutsch](LIESMICH.md).\n\nMeasures soil moisture.\n", "Measures soil moisture."),
    ("README.md", "# X\n\nX | measures soil moisture on a Pi.\n", "X | measures soil moisture on a Pi."),
    ("README.md", "# X\n\nA client/server game.\n", "A client/server game."),
    ("README.md", "# X\n\n## Why\n\nMeasures how wet the soil is.\n", "Measures how wet the soil is."),
    ("README.md", "# X\n\n## Mikä\n\nMittaa maaperän kosteutta tunnin välein.\n", "Mittaa maaperän kosteutta tunnin välein."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), READMES)
def test_a_readme_says_what_the_folder_is(name, content, expected):
    assert _texts(file(name, content)) == [(expected, name)]


SILENT = [
    "# X\n\n## Installation\n\nYou need Node 18 and a key.\n",
    "# X\n\nInstall it like this:\n\n```\nmake\n```\n",
    "# X\n",
    "# X\n\n## Setup\n\nYou need Node 18 and a key of yours.\n",
    "# X\n\n## Licence\n\nYou may use it as you like it.\n",
    "# X\n\n## Usage\n\nmake\n\n## Rain\n\nThe rain comes down from above.\n",
    "# X\n\nEnglish | 简体中文\n",
    "shop\n",
    "# X\n\n![a](b) ![c](d)\n",
    "",
    "# React + Vite\n\nThis template provides a minimal setup to get React working in Vite.\n",
    "This is a [Next.js](https://nextjs.org) project bootstrapped with [`create-next-app`](https://x).\n",
    "# my_app\n\nA new Flutter project.\n",
    "# Ng\n\nThis project was generated with [Angular CLI](https://x) version 17.0.\n",
    "# api\n\nAdd your description here\n",
]


@pytest.mark.parametrize("content", SILENT)
def test_a_readme_without_words_of_its_own_says_nothing(content):
    assert _texts(file("README.md", content)) == []


def test_a_readme_of_a_folder_within_is_not_the_folders():
    assert _texts(file("lib/README.md", "# X\n\nMeasures soil moisture.\n")) == []


MANIFESTS = [
    ("pyproject.toml", '[project]\nname = "x"\ndescription = "Measures soil moisture"\n'),
    ("pyproject.toml", '[tool.poetry]\ndescription = "Measures soil moisture"\n'),
    ("setup.cfg", "[metadata]\nname = x\ndescription = Measures soil moisture\n"),
    ("setup.py", "from setuptools import setup\nsetup(name='x', description='Measures soil moisture')\n"),
    ("package.json", '{"name": "x", "description": "Measures soil moisture"}'),
    ("Cargo.toml", '[package]\nname = "x"\ndescription = "Measures soil moisture"\n'),
    ("composer.json", '{"description": "Measures soil moisture"}'),
    ("deno.jsonc", '{\n  // comment\n  "description": "Measures soil moisture",\n}'),
    ("soil.gemspec", 'Gem::Specification.new do |spec|\n  spec.summary = "Measures soil moisture"\nend'),
    ("pom.xml", "<project><parent><description>No</description></parent><dependencies><dependency><description>No</description></dependency></dependencies><description>Measures soil moisture</description></project>"),
    ("go.mod", "// Measures soil moisture\nmodule example.org/x\n\ngo 1.22\n"),
    ("mix.exs", 'def project do\n  [app: :x,\n   description: "Measures soil moisture",\n  ]'),
    ("pubspec.yaml", "name: x\ndescription: >\n  Measures soil\n  moisture\nversion: 1\n"),
    ("pubspec.yaml", "name: x\ndescription: 'Measures soil moisture'\n"),
    ("shard.yml", "name: x\ndescription: Measures soil moisture # really\n"),
    ("build.gradle.kts", 'plugins { java }\ndescription = "Measures soil moisture"\n'),
    ("build.sbt", 'description := "Measures soil moisture"\n'),
    ("CMakeLists.txt", 'project(x VERSION 1.0\n  DESCRIPTION "Measures soil moisture")\n'),
    ("soil.cabal", "name: x\nsynopsis: Measures soil\n    moisture\n"),
    ("DESCRIPTION", "Package: soil\nTitle: Measures soil moisture\n"),
    ("soil.csproj", "<Project><PropertyGroup><Description>Measures soil moisture</Description></PropertyGroup></Project>"),
    ("flake.nix", '{\n  description = "Measures soil moisture";\n}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), MANIFESTS)
def test_a_manifest_describes_the_folder(name, content):
    assert _texts(file(name, content)) == [("Measures soil moisture", name)]


BROKEN = [
    ("pyproject.toml", "[project\ndescription="),
    ("package.json", '{"description": ["a", "b c d"]}'),
    ("package.json", "[" * 100_000),
    ("package.json", '{"description": "My application"}'),
    ("Cargo.toml", 'package = "x"'),
    ("setup.py", "setup(description=" * 500),
    ("pom.xml", '<!DOCTYPE x [<!ENTITY a "bbbbbbbbbbbb">]><project><description>&a;&a; soil</description></project>'),
    ("pom.xml", "<parent><description>Only of the parent</description></parent>"),
    ("pubspec.yaml", "description: A new Flutter project.\n"),
    ("pyproject.toml", '[project]\ndescription = "Add your description here"\n'),
    ("go.mod", "// Deprecated: use another one\nmodule x\n"),
]


@pytest.mark.parametrize(("name", "content"), BROKEN)
def test_a_manifest_that_is_broken_or_generic_says_nothing(name, content):
    assert _texts(file(name, content)) == []


def test_a_manifest_that_says_the_same_as_the_readme_is_not_repeated():
    files = [file("README.md", "# X\n\nMeasures soil moisture.\n"), file("package.json", MANIFESTS[4][1])]
    assert _texts(*files) == [("Measures soil moisture.", "README.md")]


@pytest.mark.parametrize(
    ("readme", "description"),
    [
        ("Measures the soil of a garden and draws a chart.", "Measures the soil of a garden"),
        ("Mede o solo e desenha-o pelos meses.", "Desenha o solo pelos meses."),
    ],
)
def test_a_manifest_that_says_less_in_other_words_is_not_repeated(readme, description):
    files = [file("README.md", f"# X\n\n{readme}\n"), file("setup.cfg", f"[metadata]\ndescription = {description}\n")]
    assert [origin for _, origin in _texts(*files)] == ["README.md"]


def test_a_readme_that_was_read_to_its_end_says_what_the_folder_is():
    lines = Fragments((Run(1, ("# X", "", "Measures soil moisture.")),), is_all=True)
    seen = revision(None, grade=Grade.PARTIAL, operation=Operation.READ, fragments=lines)
    assert _texts(file("README.md", None, seen, state=State.PARTIAL)) == [("Measures soil moisture.", "README.md")]
    doubt = revision(None, grade=Grade.STALE, operation=Operation.UNCLEAR)
    told = _texts(file("README.md", None, seen, doubt, state=State.STALE))
    assert told == [("Measures soil moisture.", "README.md, which may have changed since")]
    edited = revision(None, grade=Grade.PARTIAL, operation=Operation.EDIT)
    assert _texts(file("README.md", None, seen, edited, state=State.PARTIAL)) == []


def test_a_document_headed_by_the_folders_name_says_what_it_is():
    plan = file(
        "plan.md", "# Shop for used books\n\nSells books that somebody has read.\n\n## Rain\n\nNo more of it.\n"
    )
    assert _texts(file("notes.md", "# Rain\n\nIt rains a lot here.\n"), plan) == [
        ("Sells books that somebody has read.", "plan.md")
    ]


def test_a_folder_of_projects_is_what_each_of_them_is():
    books = file("books/README.md", "# books\n\nSells used books.\n")
    soil = file("soil/package.json", '{"description": "Measures soil moisture"}')
    told = [("books: Sells used books.", "books/README.md"), ("soil: Measures soil moisture", "soil/package.json")]
    assert _texts(books, soil, file("x/y.py")) == told
    assert _texts(books, file("x/y.py")) == []
    assert _texts(books, soil, file("package.json", "{}")) == []


def test_a_text_that_may_have_changed_says_so():
    stale = revision("Measures soil moisture.\n"), revision(None, grade=Grade.STALE, operation=Operation.UNCLEAR)
    told = _texts(file("README.md", None, *stale, state=State.STALE))
    assert told == [("Measures soil moisture.", "README.md, which may have changed since")]


def test_a_text_that_a_revert_may_have_taken_back_is_not_used():
    doubt = revision(None, grade=Grade.STALE, operation=Operation.UNCLEAR, note=REVERTED)
    assert _texts(file("README.md", None, revision("Measures soil moisture.\n"), doubt, state=State.STALE)) == []


@pytest.mark.parametrize("state", [State.DELETED, State.PARTIAL, State.LOST])
def test_a_text_that_is_gone_or_not_wholly_known_is_not_used(state):
    assert _texts(file("README.md", "Measures soil moisture.\n", state=state)) == []


def test_a_text_of_which_only_the_byte_order_mark_is_not_known_is_used():
    seen = revision("Misst die Feuchte im Boden.\n", grade=Grade.PARTIAL, mark_unknown=True)
    assert _texts(file("LIESMICH.txt", None, seen, state=State.PARTIAL, uncertain=seen)) == [
        ("Misst die Feuchte im Boden.", "LIESMICH.txt")
    ]


def test_what_appeared_while_a_generator_ran_is_not_the_projects_own():
    made = revision("# X\n\nEin Beispiel für das Werkzeug Soundso.\n", operation=Operation.SNAPSHOT, appeared=True)
    generated = session(turn("Leg ein Projekt an", call("npm create soundso@latest . -- --yes", started=START - 5000)))
    by_hand = session(turn("Leg ein Projekt an", call("ls", started=START - 5000)))
    assert all(origin != "README.md" for _, origin in _texts(file("README.md", None, made), sessions=[generated]))
    assert _texts(file("README.md", None, made), sessions=[by_hand])[0][1] == "README.md"


PROMPTS = [
    ("Build a command line tool that converts csv to json", True),
    ("Baue mir bitte eine kleine Verwaltung für Rezepte", True),
    ("给我写一个显示天气预报的命令行工具", True),
    ("fix all of the failing tests please", False),
    ("here is the key of the server: [REDACTED:github:1234abcd]", False),
    ("continue", False),
    ("mach weiter", False),
    ("继续", False),
    ("ok", False),
    ("", False),
]


@pytest.mark.parametrize(("prompt", "is_said"), PROMPTS)
def test_the_first_prompt_counts_where_it_says_something(prompt, is_said):
    found = _texts(file("main.py"), sessions=[session(turn(prompt))])
    assert found == ([(prompt, "first prompt")] if is_said else [])


@pytest.mark.parametrize(
    ("said", "rest"),
    [
        ("This is the site of our choir, with dates and songs.", " Start with the dates."),
        ("Das ist die Seite unseres Chors, mit Terminen und Liedern.", " Fang mit den Terminen an."),
        ("这里放的是我们合唱团网站的全部内容：演出日期、曲目和照片。", "先把日期写好。"),
        ("Hi there! We make a site for our choir.", " Start with the dates."),
        ("Build a site for our choir with all dates. It must work offline.", ""),
        ("Can you make a site for our choir? It must work offline.", ""),
    ],
)
def test_of_a_first_prompt_that_begins_with_a_statement_only_that_counts(said, rest):
    assert _texts(file("main.py"), sessions=[session(turn(said + rest))]) == [(said, "first prompt")]


@pytest.mark.parametrize(
    "opening",
    [
        session(turn("Build a tool that converts csv to json", is_command=True)),
        session(turn("Build a tool that converts csv to json", taken_back=True)),
        session(turn("Build a tool that converts csv to json"), parent="ses_0"),
        session(turn("Build a tool that converts csv to json"), copied=1),
        session(turn("Build a tool that converts csv to json"), directory="/home/dev"),
        session(turn("Build a tool that converts csv to json", message_ids=("msg_7",))),
    ],
)
def test_a_prompt_that_did_not_begin_the_folder_says_nothing(opening):
    assert _texts(file("main.py"), sessions=[opening]) == []


def _there(*names):
    return [file(name, None, revision("x", operation=Operation.SNAPSHOT)) for name in names]


def test_a_prompt_in_a_folder_that_was_there_before_says_so():
    sessions = [session(turn("Fix the wrong totals in the report"))]
    assert _texts(file("new.py"), *_there("1.py", "2.py", "3.py"), sessions=sessions) == [
        ("Fix the wrong totals in the report", "first prompt; most files were there before")
    ]


def test_a_folder_whose_readme_is_not_known_has_its_first_prompt():
    there = file("README.md", None, revision(None, operation=Operation.SNAPSHOT))
    sessions = [session(turn("Add a bell to README.md that rings when a parcel is late"))]
    assert len(_texts(file("bell.go"), there, sessions=sessions)) == 1


@pytest.mark.parametrize("there", [_there("1.py", "2.py", "3.py"), _there("ideen.txt")])
def test_a_prompt_that_continues_existing_work_adds_nothing_to_a_readme(there):
    readme = file("README.md", "# X\n\nSammelt Rezepte der Familie.\n")
    opening = session(turn("Mach aus ideen.txt eine schöne Liste in Markdown"))
    assert [origin for _, origin in _texts(readme, file("ideen.md"), *there, sessions=[opening])] == ["README.md"]


@pytest.mark.parametrize(
    "first",
    [
        session(turn("continue")),
        session(turn("Write down the licence terms", message_ids=("msg_7",))),
        session(turn("Write down the licence terms"), directory="/home/dev"),
        session(turn("Write down the licence terms", taken_back=True)),
    ],
)
def test_a_later_session_did_not_begin_the_folder(first):
    later = session(turn("Build a shop for used books", prompt_id="msg_y", message_ids=("msg_y", "msg_z")), id_="ses_2")
    files = [file("LICENSE"), file("main.py", None, revision("x", message_id="msg_z"))]
    assert _texts(*files, sessions=[first, later]) == []


def test_a_prompt_adds_nothing_to_words_that_were_there_before_it():
    opening = [session(turn("Build a shop for used books"))]
    readme = "# X\n\nSells what somebody has read.\n"
    made = [file("a.py"), file("b.py")]
    there = file("README.md", None, revision(readme, operation=Operation.READ))
    assert len(_texts(*made, there, sessions=opening)) == 1
    assert len(_texts(*made, file("README.md", readme), sessions=opening)) == 2


DOCUMENTS = [
    ("main.tex", "% !TEX x\n\\documentclass[12pt]{book}\n\\title[Bees]{Wild bees\\thanks{Funded} \\\\ in {\\em vineyards}}", "Wild bees in vineyards"),
    ("these.tex", "\\documentclass{report}\n% \\title{Old one of mine}\n\\title{Les abeilles du vignoble}\n", "Les abeilles du vignoble"),
    ("a.tex", "% Doktorarbeit über die Wildbienen im Weinberg.\n\n\\documentclass{book}\n", "Doktorarbeit über die Wildbienen im Weinberg."),
    ("a.tex", "% Compile with latexmk\n\n\\documentclass{book}\n", None),
    ("a.tex", "\\documentclass{book}\n\\title{\\@mytitle}", None),
    ("a.tex", "\\documentclass{book}\n\\title{Your Title Here}", None),
    ("a.tex", "\\documentclass{book}\n\\title{Never closed of all", None),
    ("a.tex", "\\documentclass{standalone}\n\\title{A map of the vineyards}", None),
    ("a.tex", "\\chapter{The bees of the vineyard}", None),
    ("ch/a.tex", "\\documentclass{book}\n\\title{The bees of the vineyard}", None),
    ("book.adoc", "= The bees of the vineyard\nMe <a@b.c>\n:doctype: book\n\ninclude::one.adoc[]\n", "The bees of the vineyard"),
    ("book.adoc", "= The bees of the vineyard\n\ninclude::one.adoc[]\n", None),
    ("index.html", '<head><meta content="Opening hours &amp; new books" name="description"><title>x</title>', "Opening hours & new books"),
    ("index.html", "<!-- <meta name='description' content='Hours of the old shop'> --><title>Some long title here</title>", None),
    ("index.html", '<meta name="description" content="Web site created using create-react-app">', None),
    ("docs/index.rst", "Shop documentation\n==================\n\nSells books that somebody has read.\n", "Sells books that somebody has read."),
    ("docs/index.rst", "Shop documentation\n==================\n\nAdd your content using ``reStructuredText`` syntax.\n", None),
    ("docs/more.rst", "Shop documentation\n==================\n\nSells books that somebody has read.\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), DOCUMENTS)
def test_a_main_document_says_what_the_folder_is(name, content, expected):
    assert _texts(file(name, content)) == ([(expected, name)] if expected else [])


@pytest.mark.parametrize(
    "other", [file("b.tex", "\\documentclass{book}\n\\title{Of another thing}"), file("pyproject.toml", "")]
)
def test_of_two_documents_or_beside_a_program_none_is_the_main_one(other):
    assert _texts(file("a.tex", "\\documentclass{book}\n\\title{The bees of the vineyard}"), other) == []


def test_the_prompt_before_go_on_is_the_one_that_began_it():
    before = turn("Plan a shop for used books", prompt_id="msg_a", message_ids=("msg_a",))
    found = purposes.find(TARGET, [session(before, turn("go on"))], [file("main.py")])
    assert [(one.text, one.citation.message_id) for one in found] == [("Plan a shop for used books", "msg_a")]


def test_secrets_are_hidden_in_what_is_said():
    token = "ghp_" + "a1B2" * 9
    assert token not in _texts(file("README.md", f"# X\n\nUses the key {token} to measure soil.\n"))[0][0]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from([name for name, *_ in (*READMES, *MANIFESTS, *DOCUMENTS)]),
    st.binary(max_size=400) | st.text(max_size=400),
)
def test_any_bytes_give_a_bounded_text_and_no_error(name, content):
    for one in purposes.find(TARGET, [], [file(name, content)]):
        assert 0 < len(one.text) <= 240
        assert "\n" not in one.text


@pytest.mark.parametrize("piece", ["<pre>", "<!--", "[", "![", "(", "*a", "_a_", "`", "|", "<h1>", "# a\n", "<a ", ">"])
def test_a_hostile_readme_costs_little_time(piece):
    begun = time.process_time()
    purposes.find(TARGET, [], [file("README.md", piece * (120_000 // len(piece)))])
    assert time.process_time() - begun < 30


@pytest.mark.parametrize("name", ["a.tex", "a.adoc", "index.html"])
@pytest.mark.parametrize(
    "piece", ["\\documentclass[", "\\title{", "\\title[", "{", "%", "<meta ", "<!--", "= a\n", "\\thanks{"]
)
def test_a_hostile_document_costs_little_time(name, piece):
    begun = time.process_time()
    for head in ("", "\\documentclass{book}\n\\title{", ":doctype: book\n"):
        purposes.find(TARGET, [], [file(name, head + piece * (120_000 // len(piece)))])
    assert time.process_time() - begun < 30
