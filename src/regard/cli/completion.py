"""regard completion: the Tab key knows the verbs."""

from __future__ import annotations

import click

from regard.cli.options import polite


@click.command(short_help="Let the Tab key complete verbs and flags.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@polite()
def completion(shell: str) -> None:
    """Print what a shell has to read so that Tab completes verbs and flags.

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
