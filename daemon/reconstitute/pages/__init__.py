"""What was found out about a target becomes Markdown that a person likes to read (design section 8).

`render` makes the pages of one tree, `index` the page over all of them. Everything here is a pure function of its
material: no clock, no archive, no model; publishing is the business of daemon.publish.
"""
