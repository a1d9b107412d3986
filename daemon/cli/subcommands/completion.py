"""``reconstitute completion``: a script for bash, zsh or fish, which asks this program for what may follow."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class

VARIABLE = "_RECONSTITUTE_COMPLETE"
"""Set by the script; what it holds is click's (click.shell_completion)."""


class Bash(BashComplete):
    """As click's, but for `--option=value`, which bash gives as three words: it breaks them at `=`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is completed, and this one."""
        words, incomplete = super().get_completion_args()
        joined: list[str] = []
        for word in words:
            if joined and (word == "=" or joined[-1].endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        if joined and joined[-1].startswith("--"):
            joined[-1] = joined[-1].removesuffix("=")
        return joined, incomplete


add_completion_class(Bash, "bash")
_SHELLS = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}


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
