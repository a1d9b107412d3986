"""Which files may begin with a byte order mark that no record shows.

Neither a read nor a diff of OpenCode 1.15 and later shows one, and since 1.14 a write keeps one that it does not have
itself. Most files never have one; editors for Windows put it before some kinds. Only for those is "all but the mark is
known" told apart from "all is known": otherwise nothing that was read or compared could ever be called proven.
"""

from __future__ import annotations

import posixpath

_WINDOWS = ".cs .csproj .vb .vbproj .fs .fsproj .sln .resx .xaml .config .ps1 .psm1 .psd1 .reg .inf .rc .nuspec"
_EDITORS = (
    ".txt .csv .tsv .srt .sub .vtt .xml .xsd .xsl .xslt .htm .html .ini .sql .rtf .tex .bib "
    ".cpp .hpp .h .c .cc .java .bat"
)
_USUAL = frozenset(_WINDOWS.split())
_POSSIBLE = _USUAL | frozenset(_EDITORS.split())


def may_begin_with_one(path: str, *, was_read: bool = False) -> bool:
    """Whether a file of this kind is one where a mark has to be reckoned with.

    Where the whole file `was_read`, only kinds that usually have one count: before those a reader that hides it is
    most misleading.
    """
    return posixpath.splitext(path)[1].lower() in (_USUAL if was_read else _POSSIBLE)
