"""`stepacc completion`."""

import click
from click.shell_completion import get_completion_class

from stepacc_dagster.cli.output import emit_json, json_option

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_STEPACC_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, *, as_json: bool) -> None:
    """Print the script that completes commands and options in SHELL.

    \b
    stepacc completion bash >> ~/.bashrc
    stepacc completion zsh >> ~/.zshrc
    stepacc completion fish > ~/.config/fish/completions/stepacc.fish
    """  # noqa: D301 (click reads the backspace)
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 (each of the choices has one)
    script = made(ctx.find_root().command, {}, "stepacc", _VARIABLE).source()
    if as_json:
        emit_json({"shell": shell, "script": script})
    else:
        click.echo(script)
