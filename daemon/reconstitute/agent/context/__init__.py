"""What a model is shown: recorded text in delimited blocks, and a ledger of what of it was shown.

`blocks` makes a block, `messages` renders a message in one, `facts` the facts and prompts of a folder. `opening` puts
together what a question begins with, and `ledger` knows what was shown, so that quotes can be checked.
"""
