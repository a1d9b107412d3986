"""The recorded events that the histories of some paths depend on, and what reverts and formatters add to them."""
