"""regard completion: shell completion scripts."""

from __future__ import annotations

import click


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete verbs and options.

    \b
    Examples:
      eval "$(regard completion bash)"                                      # in ~/.bashrc
      regard completion fish > ~/.config/fish/completions/regard.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    root = click.get_current_context().find_root().command
    complete = found(root, {}, "regard", "_REGARD_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
