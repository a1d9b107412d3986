"""A model answers the questions about a target from the records, a step at a time.

`all_questions` asks what must be asked, and `single_question` asks one of them in a `loop` within `limits`. `context`
is what the model is shown, as data. `tools` is all that it can do; they hold its statements against what it was shown.
`outcomes` and `trajectory` are kept. Nothing here reads outside the archive or writes outside the target's own record.
"""
