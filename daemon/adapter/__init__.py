"""Ollama's HTTP API in front of an OpenCode server: any client of Ollama can use the models a user has in OpenCode.

A request becomes one prompt in an OpenCode session (`exchange`), in which a model without tools is given the client's
tools in words. `request` reads what comes in, `responses` writes what goes out, sessions are kept for a
client's next turn and always deleted in the end (`sessions`). `serve` is the foreground server.
"""
