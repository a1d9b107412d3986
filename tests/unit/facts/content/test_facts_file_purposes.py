"""What each file is for, in its own words or in those of the prompt that made it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.model import Operation
from daemon.reconstitute.facts.purposes import files as file_purposes
from daemon.reconstitute.recover import State
from tests.support.examples import examples
from tests.unit.facts.folder_facts import TARGET, file, revision, session, turn

LICENCE = "/*\n * Copyright (c) 2024 Somebody\n * SPDX-License-Identifier: MIT\n */\n\n"
TABLE = [
    ("a.py", '"""Keeps the todos in memory.\n\nMore of it. And more."""\nx = 1\n', "Keeps the todos in memory.", "docstring"),
    ("a.py", "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n'''Liest Messwerte ein.'''\n", "Liest Messwerte ein.", "docstring"),
    ("a.py", 'r"""Parses\nthe logs."""\n', "Parses the logs.", "docstring"),
    ("a.py", "# SPDX-License-Identifier: MIT\n# pylint: disable=all\n\n# Draws the maps\n\nimport os\n", "Draws the maps", "comment"),
    ("a.ex", 'defmodule A do\n  @moduledoc """\n  Sends mails.\n  """\n', "Sends mails.", "docstring"),
    ("a.js", f"{LICENCE}/**\n * @fileoverview Talks to the bank.\n * @author me\n */\nimport x from 'x';\n", "Talks to the bank.", "comment"),
    ("a.ts", "// eslint-disable-next-line\n\n// 天气预报的客户端。\n\nexport const a = 1;\n", "天气预报的客户端。", "comment"),
    ("a.tsx", "'use client'\n/** Shows the cart. */\nexport default class Cart {}\n", "Shows the cart.", "comment"),
    ("a.go", "// Package soil reads sensors. It is small.\npackage soil\n", "Package soil reads sensors.", "comment"),
    ("a.go", "//go:build linux\n\n// Package soil reads sensors.\npackage soil\n", "Package soil reads sensors.", "comment"),
    ("a.rs", "//! Решает уравнения.\n\nuse std::io;\n", "Решает уравнения.", "comment"),
    ("A.java", "package a;\n\nimport b.C;\n\n/**\n * Holds one order.\n *\n * @author x\n */\n@Entity\npublic class A {}\n", "Holds one order.", "comment"),
    ("A.cs", "using System;\n\n/// <summary>\n/// Holds one order.\n/// </summary>\npublic class A {}\n", "Holds one order.", "comment"),
    ("a.php", "<?php\n/**\n * Gère les factures.\n */\nnamespace A;\n", "Gère les factures.", "comment"),
    ("a.c", "/* Blinks the lamp. */\n#include <stdio.h>\n", "Blinks the lamp.", "comment"),
    ("a.rb", "# frozen_string_literal: true\n\n# Imports old orders.\nclass Import; end\n", "Imports old orders.", "comment"),
    ("a.sh", "#!/bin/sh\n# Starts everything for development.\nset -e\n", "Starts everything for development.", "comment"),
    ("run", "#!/bin/bash\n# Starts everything.\nfoo\n", "Starts everything.", "comment"),
    ("a.js", "import a from 'b'\n\n/** Adds two numbers. */\nfunction add() {}\n", "Adds two numbers.", "comment"),
    ("a.js", "// Preise je Land.\nexport const preise = { DE: 1 };\n", "Preise je Land.", "comment"),
    ("a.rs", "//! Decides when it rains.\npub fn rain(mm: u32) -> bool { mm > 0 }\n\nfn other() {}\n", "Decides when it rains.", "comment"),
    ("a.rs", "pub mod b;\n\n/// Converts inches.\npub fn mm(inch: u32) -> u32 {\n    inch * 25\n}\n", "Converts inches.", "comment"),
    ("ledger.mjs", "// Keeps the ledger in memory.\nconst ledger = [];\nexport function add(x) {\n  ledger.push(x);\n}\n", "Keeps the ledger in memory.", "comment"),
    ("pie.mjs", "// Draws shares as slices.\nexport function plot(x) {}\nexport function save(x) {}\n", "Draws shares as slices.", "comment"),
    ("a.go", "/* Reads the meter. */\nfunc main() {\n}\n", "Reads the meter.", "comment"),
    ("a.py", "# Рисует карту города.\ndef draw(city):\n    pass\n", "Рисует карту города.", "comment"),
    ("a.lua", "-- Moves the ship.\nfunction go()\n  x()\nend\n", "Moves the ship.", "comment"),
    ("a.erl", "% Counts the votes.\ncount(X) ->\n  X.\n", "Counts the votes.", "comment"),
    ("a.clj", "; 計算税金。\n(defn tax [x]\n  x)\n", "計算税金。", "comment"),
    ("a.c", "// Blinks the lamp.\nint main(void) {\n  return 0;\n}\n", "Blinks the lamp.", "comment"),
    ("a.kt", "/* Liest den Zähler. */\nfun read() = 1\n", "Liest den Zähler.", "comment"),
    ("a.ini", "; Ports of the office\n[web]\nport=1\n", "Ports of the office", "comment"),
    ("a.sql", "-- Orders and their items\nCREATE TABLE o (id int);\n", "Orders and their items", "comment"),
    ("a.lua", "--[[\n  Moves the ship.\n]]\nlocal x = require('x')\n", "Moves the ship.", "comment"),
    ("a.hs", "{- Counts words. -}\nmodule Main where\n", "Counts words.", "comment"),
    ("a.css", "/* ========== */\n/* Colours of the shop */\n\nbody {}\n", "Colours of the shop", "comment"),
    ("a.vue", "<!-- The list of orders -->\n<template/>\n", "The list of orders", "comment"),
    ("Makefile", "# Builds the book.\nall:\n\ttrue\n", "Builds the book.", "comment"),
    ("Dockerfile", "# syntax=docker/dockerfile:1\n# Image of the worker\nFROM x\n", "Image of the worker", "comment"),
    ("a.yml", "# Runs the tests on every push\n\nname: ci\n", "Runs the tests on every push", "comment"),
    ("a.el", ";;; Keys for the diary\n\n(setq x 1)\n", "Keys for the diary", "comment"),
    ("a.tex", "\\documentclass{article}\n\\title{Über Moose}\n", "Über Moose", "title"),
    ("a.html", "<!DOCTYPE html><html><head><title>Bestellungen</title>", "Bestellungen", "title"),
    ("a.json", '{"description": "Colours of the shop"}', "Colours of the shop", "description"),
    ("Cargo.toml", '[package]\ndescription = "Reads sensors"\n', "Reads sensors", "description"),
    ("a.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["# Sales of\\n", "text"]}]}', "Sales of", "heading"),
    ("docs/api.md", "---\ntitle: x\n---\n# API reference\n\nText.\n", "API reference", "heading"),
    ("notes/mai.md", "# Mai\n\nWas im Mai im Garten zu tun ist.\n", "Was im Mai im Garten zu tun ist.", "first paragraph"),
    ("a.rst", "Deployment guide\n================\n\nText.\n", "Deployment guide", "heading"),
    ("a.adoc", "= Orbit of Moons\n\nText.\n", "Orbit of Moons", "heading"),
    ("a.org", "* Einkauf der Woche\n- Brot\n", "Einkauf der Woche", "heading"),
    ("README.md", "# shop\n\nSells used books. Really.\n", "Sells used books.", "first paragraph"),
    ("a.qmd", "---\ntitle: Tides of the bay\nformat: pdf\n---\n\nThe gauge of 2019 was moved.\n", "Tides of the bay", "title"),
    ("a.Rmd", '---\ntitle: "Gezeiten: ein Jahr"\n---\n## a\n\nDer Pegel ist neu.\n', "Gezeiten: ein Jahr", "title"),
    ("a.md", "+++\ntitle = '潮の高さ'\n+++\n\n計器は去年動かした。\n", "潮の高さ", "title"),
    ("a.md", "---\ntitle: >-\n  folded\n---\n\nThe gauge was moved.\n", "The gauge was moved.", "first paragraph"),
    ("a.md", "---\nx: 1\n---\n\nThe gauge was moved.\n\ntitle: no front\n", "The gauge was moved.", "first paragraph"),
    ("tides.md", "---\ntitle: Tides\n---\n\nThe gauge was moved.\n", "The gauge was moved.", "first paragraph"),
    ("README.md", "---\ntitle: Tides of the bay\n---\n\nDraws the tides.\n", "Draws the tides.", "first paragraph"),
    (".env.example", "# Copy to .env and fill in\nKEY=\nHOST=\n", "Copy to .env and fill in", "comment"),
    ("nginx.conf.dist", "# Vorlage des Servers\n\nuser x;\n", "Vorlage des Servers", "comment"),
    ("config.yml.sample", "# Примерные настройки\n\na: 1\n", "Примерные настройки", "comment"),
]  # fmt: skip


def _own(*files, sessions=()):
    return {
        path[len(TARGET) + 1 :]: (one.text, one.origin) for path, one in file_purposes.find(files, sessions).items()
    }


@pytest.mark.parametrize(("name", "content", "text", "origin"), TABLE)
def test_a_file_says_what_it_is_for(name, content, text, origin):
    assert _own(file(name, content)) == {name: (text, origin)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", "import os\n\n# the port of the server\nPORT = 1\n"),
        ("a.py", "# the port of the server\nPORT = 1\nHOST = 2\n"),
        ("a.yml", "# the port of the server\nport: 1\nhost: x\n"),
        ("a.js", "// adds two numbers\nfunction add(a, b) {}\n\nfunction sub(a, b) {}\n"),
        ("a.js", "// Totals of a day.\nfunction add(a, b) {}\n\n// Shows them.\nfunction show(a, b) {}\n"),
        ("a.js", "/** Totals of a day. */\nfunction add(a, b) {}\n\nfunction show(a, b) {}\n"),
        ("a.rs", "/// Totals of a day.\nfn add() {}\n\nfn show() {}\n"),
        ("a.rs", "use std::io;\n\n// Totals of a day.\nfn add() {}\n\nfn show() {}\n"),
        ("a.js", "// const x = 1;\n\nconst y = 2;\n"),
        ("a.js", "/* eslint-disable */\n\nx()\n"),
        ("a.js", LICENCE + "x()\n"),
        ("a.js", "import a from 'b'\n\n/** Adds two numbers. */\nfunction add() {}\n\nfunction sub() {}\n"),
        ("a.py", "# TODO rewrite all of this\n\nx = 1\n"),
        ("a.py", "x = 1\n'''not a docstring'''\n"),
        ("a.py", "# ==========\n\nx = 1\n"),
        ("a.py", "# a.py\n\nx = 1\n"),
        ("a.txt", "2026-01-01 INFO something\n"),
        ("a.csv", "name,price\n"),
        ("a.json", '{"a": 1}'),
        ("a.json", "[" * 9000),
        ("a.py", b"\xff\xfe\x00"),
        ("a.png", b"\x89PNG\r\n\x1a\n\x00"),
        ("__init__.py", ""),
    ],
)
def test_a_file_without_words_about_itself_says_nothing(name, content):
    assert _own(file(name, content)) == {}


def test_a_file_without_words_is_for_what_its_prompt_asked():
    sessions = [session(turn("Create settings with DEBUG on. Then stop."))]
    assert _own(file("settings.py", "DEBUG = 1\n"), sessions=sessions) == {
        "settings.py": ("Create settings with DEBUG on.", "prompt")
    }


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("We run a shop for books. Write till.py, which adds up a basket.", "Write till.py, which adds up a basket."),
        ("Lies zuerst alles. Schreib dann src/till.py für die Kasse.", "Schreib dann src/till.py für die Kasse."),
        ("先读README.md。写till.py，用来计算每桌的总价。", "写till.py，用来计算每桌的总价。"),
        ("Add a till to the shop.", "Add a till to the shop."),
        ("We run a shop for used books. Add a basket.", ""),
        ("Write tilling.py, which turns the soil.", ""),
        ("Write till.pyc for the cache of it.", ""),
        ("Write till.py.", ""),
        ("This repository holds all of our shop: the till and the stock.", ""),
        ("Dieses Projekt führt den Laden: till und Lager.", ""),
        ("这个仓库用来管理整个商店：till 和仓储。", ""),
        ("Never put a password into till.py.", ""),
        ("密码永远不要写进 till.py。", ""),
        ("Add a till to this project.", "Add a till to this project."),
        ("This repository holds a till and a stock. Begin with the till of the bar.", ""),
        ("This repository holds a till and a stock. Write till.py for the bar.", "Write till.py for the bar."),
    ],
)
def test_only_the_sentence_of_a_prompt_that_names_the_file_counts(prompt, said):
    found = _own(file("src/till.py"), sessions=[session(turn(prompt))])
    assert found == ({"src/till.py": (said, "prompt")} if said else {})


def test_a_prompt_that_says_nothing_leaves_it_to_the_one_before():
    before = turn("Write the settings of the shop", message_ids=("msg_a",), prompt_id="msg_a")
    found = file_purposes.find([file("settings.py")], [session(before, turn("go on"))])[f"{TARGET}/settings.py"]
    assert (found.text, found.citation.message_id) == ("Write the settings of the shop", "msg_a")


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": Operation.READ},
        {"operation": Operation.SNAPSHOT},
        {"operation": Operation.EDIT},
        {"message_id": "msg_x"},
    ],
)
def test_a_prompt_that_did_not_make_the_file_says_nothing(fields):
    assert (
        _own(file("s.py", None, revision("x", **fields)), sessions=[session(turn("Fix the totals of the shop"))]) == {}
    )


def test_a_file_that_another_session_wrote_meanwhile_is_that_ones():
    shown = revision("x", operation=Operation.SNAPSHOT, appeared=True, message_id="msg_b", session_id="ses_b")
    other = session(turn("Look at the totals of the shop", message_ids=("msg_b",), prompt_id="msg_b"), id_="ses_b")
    own = session(turn("Write the settings of the shop"))
    assert (
        _own(file("settings.py", None, shown, revision("x")), sessions=[own, other])["settings.py"][0]
        == "Write the settings of the shop"
    )
    assert _own(file("settings.py", None, shown), sessions=[own, other]) == {}


def test_a_command_line_of_the_user_is_no_purpose():
    assert _own(file("s.py"), sessions=[session(turn("!echo a b c d > s.py", is_command=True))]) == {}


def test_a_content_that_is_only_partly_known_is_not_used():
    assert _own(file("a.py", '"""Keeps the todos."""\n', state=State.PARTIAL)) == {}


def test_a_secret_in_a_docstring_is_hidden():
    token = "ghp_" + "a1B2" * 9
    assert token not in _own(file("a.py", f'"""Uses {token} to log in."""\n'))["a.py"][0]


def test_a_long_sentence_is_cut_between_words():
    text = _own(file("a.py", '"""' + "word " * 100 + '"""'))["a.py"][0]
    assert len(text) <= 120
    assert text.endswith("word…")


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from([name for name, *_ in TABLE]), st.binary(max_size=300) | st.text(max_size=300))
def test_any_bytes_give_a_bounded_line_and_no_error(name, content):
    for one in file_purposes.find([file(name, content)], []).values():
        assert 0 < len(one.text) <= 120
        assert "\n" not in one.text


@pytest.mark.parametrize("name", ["a.py", "a.js", "a.md", "a.html", "a.json", "a.rst", "a.org", "a.sql"])
@pytest.mark.parametrize(
    "piece", ["#", "# ", "//", "/*", "<!--", "'''", "\n", "<title>", "[", "* a\n", "a. ", "@a ", "public "]
)
def test_a_hostile_file_costs_little_time(name, piece):
    begun = time.process_time()
    file_purposes.find([file(name, piece * (1_000_000 // len(piece)))], [])
    assert time.process_time() - begun < 30
