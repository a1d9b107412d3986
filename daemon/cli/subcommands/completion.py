"""``reconstitute completion``: a script for bash, zsh or fish, which asks this program for what may follow."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

VARIABLE = "_RECONSTITUTE_COMPLETE"
"""Set by the script; what it holds is click's (click.shell_completion)."""

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script with which a shell completes commands, options and paths.

    \b
    Examples:
      bash:  echo 'eval "$(reconstitute completion bash)"' >> ~/.bashrc
      zsh:   echo 'eval "$(reconstitute completion zsh)"' >> ~/.zshrc
      fish:  reconstitute completion fish > ~/.config/fish/completions/reconstitute.fish
    """  # noqa: D301 - click's mark for text that is not to be filled
    click.echo(_SHELLS[shell](context.find_root().command, {}, "reconstitute", VARIABLE).source())
