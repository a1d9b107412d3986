"""English forms that no rule of spelling leads back to their word: what was bought is found by asking what to buy.

Questions mostly have the plain form (what did we choose?), answers the past one (we chose). Forms that are words of
their own at least as often (left, bit, led, lay, leaves) are not here.
"""

from __future__ import annotations

from collections.abc import Mapping

_FORMS = """
arise arose arisen; awake awoke awoken; become became; begin began begun; bend bent; bind bound; bite bitten; blow blew
blown; break broke broken; bring brought; build built; buy bought; catch caught; child children; choose chose chosen;
come came; deal dealt; dig dug; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
feed fed; feel felt; fight fought; find found; fly flew flown; foot feet; forget forgot forgotten; forgive forgave
forgiven; freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear heard;
hide hid hidden; hold held; index indices; keep kept; know knew known; lend lent; lose lost; make made; man men; matrix
matrices; mean meant; meet met; mistake mistook mistaken; mouse mice; overcome overcame; override overrode overridden;
overwrite overwrote overwritten; pay paid; person people; rebuild rebuilt; redo redid redone; rerun reran; rewrite
rewrote rewritten; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell
sold; send sent; shake shook shaken; shoot shot; show shown; sing sang sung; sink sank sunk; sit sat; sleep slept; slide
slid; speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck; swear swore sworn;
swim swam swum; take took taken; teach taught; tear torn; tell told; think thought; throw threw thrown; tooth teeth;
understand understood; undo undid undone; vertex vertices; wake woke woken; wear wore worn; win won; withdraw withdrew
withdrawn; woman women; write wrote written
"""

WORD_OF: Mapping[str, str] = {
    form: word for word, *forms in (entry.split() for entry in _FORMS.split(";")) for form in forms
}
"""The word that each form belongs to; lower case."""
