"""The command line: flags become a request, every error is shown in one place.

What only some commands need is imported where they need it: the help comes at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from generator import __version__
from generator.catalog.options import OPTIONS, Option
from generator.errors import MsgenError, Problem, Refused
from generator.listing import CATALOGUES, entries, table
from generator.spec import SourceRef, TrainingSpec

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "auto_envvar_prefix": None,
}


class ChoiceType(click.ParamType):  # type: ignore[type-arg]
    """One of an option's choices in any case, or a user's own ``path.py:Name``."""

    name = "choice"

    def __init__(self, option: Option):
        self.option = option
        self.choices = option.choices or {}

    def get_metavar(self, param: click.Parameter, ctx: Any = None) -> str:
        return f"[{self.option.values_text}]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | SourceRef:
        text = str(value)
        for key in self.choices:
            if key.lower() == text.lower():
                return key
        path, colon, name = text.rpartition(":")
        if self.option.own and colon and path.endswith(".py"):
            return SourceRef(path, name)
        from generator import rules

        near = rules.nearest(text, self.option)
        hint = f" Did you mean {near}?" if near else ""
        own = self.option.own and (":" in text or text.endswith(".py"))
        form = f" Your own code is named {self.option.own}." if own else ""
        self.fail(
            f"{text!r} is none of {', '.join(self.option.values_text.split('|'))}."
            f"{hint}{form}",
            param,
            ctx,
        )

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(key, help=entry.summary)
            for key, entry in self.choices.items()
            if key.lower().startswith(incomplete.lower())
        ]
        if self.option.own and not found:
            return [CompletionItem(incomplete, type="file")]
        return found


class CollectedOption(click.Option):
    """An option whose wrong value is kept, to be shown with all else that is wrong."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            wrong = ctx.meta.setdefault("generator.wrong", {})
            wrong[self.opts[0]] = Problem(
                f"{self.opts[0]} {value}",
                error.message,
                {str(self.name): self.near(value)},
            )
            return None

    def near(self, value: Any) -> Any:
        """The value that was probably meant, else the default."""
        from generator import rules

        option = next(option for option in OPTIONS if option.field == self.name)
        return rules.nearest(str(value), option) or option.default


def _option_type(option: Option) -> Any:
    if option.kind == "choice":
        return ChoiceType(option)
    return click.INT if option.kind == "integer" else click.FLOAT


def _spec_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of the catalogue, in its order."""
    for option in reversed(OPTIONS):
        decorate = click.option(
            option.flag,
            option.field,
            cls=CollectedOption,
            type=_option_type(option),
            metavar=None if option.kind == "choice" else option.values_text,
            help=f"{option.help}  [{option.default_text}]",
        )
        function = decorate(function)
    return function


class Command(click.Group):
    """The group; its help shows the options under the headings of the catalogue."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        groups = {option.field: option.group for option in OPTIONS}
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                heading = groups.get(param.name or "", "Output")
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)
        self.format_commands(ctx, formatter)


@click.group(cls=Command, invoke_without_command=True, context_settings=CONTEXT)
@_spec_options
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    default="train.py",
    help="Where the script goes; - is standard output.  [train.py]",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would change, and write nothing."
)
@click.version_option(__version__, "-V", "--version", prog_name="msgen")
@click.pass_context
def cli(
    ctx: click.Context, /, output: str, force: bool, dry_run: bool, **options: Any
) -> None:
    """Write a standalone MindSpore training script.

    Mixed precision, loss scaling, gradient accumulation and clipping are put together
    so that the numbers are right, in the style you choose.

    Example: msgen --style functional --amp O2 --accum 4
    """
    if ctx.invoked_subcommand is not None:
        _no_options_before(ctx, ctx.invoked_subcommand)
        return
    from generator import rules
    from generator.writing import check_target, write

    values = {name: value for name, value in options.items() if value is not None}
    script = "train.py" if output == "-" else output
    spec = TrainingSpec(**values, script=script)
    in_the_way = [] if output == "-" else check_target(output, force or dry_run)
    extra = {"-o -": output == "-", "--force": force, "--dry-run": dry_run}
    _check(ctx, spec, in_the_way, [word for word, given in extra.items() if given])
    # Jinja2 and Black come in here, when there is something to render.
    from generator.generate import generate

    text = generate(spec)
    if dry_run:
        _show_difference(script, text)
    elif output == "-":
        click.echo(text, nl=False)
    else:
        try:
            write(output, text)
        except OSError as error:
            reason = f"{error.strerror or error}; what was there is unchanged."
            raise Refused([Problem(f"-o {output}", reason)]) from error
        _report(spec, text)
    for warning in rules.warnings(spec):
        click.echo(f"warning: {warning}", err=True)


def _no_options_before(ctx: click.Context, subcommand: str) -> None:
    """Refuse ``msgen --amp O2 list``: the option would do nothing."""
    from_command_line = click.core.ParameterSource.COMMANDLINE
    given = [
        param.opts[0]
        for param in ctx.command.params
        if param.name and ctx.get_parameter_source(param.name) is from_command_line
    ]
    if given:
        raise click.UsageError(
            f"{', '.join(given)} is for writing a script, not for {subcommand!r}.", ctx
        )


def _check(
    ctx: click.Context,
    spec: TrainingSpec,
    in_the_way: list[Problem],
    extra: list[str],
) -> None:
    """Refuse the request with all that is wrong with it, if anything is."""
    from generator import rules

    wrong: dict[str, Problem] = ctx.meta.get("generator.wrong", {})
    # A value that was not understood is left out of the request, so what the rules say
    # of the option's default would only confuse.
    found = [
        problem
        for problem in rules.check(spec)
        if not wrong.keys() & set(problem.flags.split())
    ]
    found += in_the_way
    if wrong:
        problems = [*wrong.values(), *found]
        raise WrongUsage(problems, rules.refuse(problems, spec, extra).suggestion)
    if found:
        raise rules.refuse(found, spec, extra)


class WrongUsage(Refused):
    """Words that msgen does not know; the exit status tells it from a refusal."""


def _show_difference(script: str, text: str) -> None:
    try:
        with open(script, encoding="utf-8", errors="surrogateescape") as file:
            before = file.read()
    except OSError:
        before = ""
    import difflib

    lines = list(
        difflib.unified_diff(
            before.splitlines(keepends=True),
            text.splitlines(keepends=True),
            script,
            f"{script} (new)",
        )
    )
    colors = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        click.secho(line.rstrip("\n"), fg=colors.get(line[0]))
    if not lines:
        click.echo(f"{script} would stay as it is.")


def _report(spec: TrainingSpec, text: str) -> None:
    """Say what was written, what was chosen and how it is run."""
    import shlex

    from generator.plan import summary

    click.echo(f"wrote {spec.script} ({len(text.splitlines())} lines)")
    for line in summary(spec):
        click.echo(f"  {line}")
    folder, name = os.path.split(spec.script)
    change = f"cd {shlex.quote(folder)} && " if folder else ""
    click.echo(f"run it: {change}python {shlex.quote(name)}")


@cli.command("list")
@click.argument("what", required=False, type=click.Choice(list(CATALOGUES), False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(what: str | None, as_json: bool) -> None:
    """Show what there is to choose from."""
    chosen = [what] if what else list(CATALOGUES)
    if as_json:
        import json

        found = {name: entries(name) for name in chosen}
        click.echo(json.dumps(found[what] if what else found, indent=2))
        return
    click.echo("\n\n".join(table(name) for name in chosen))


@cli.command("verify")
@click.argument("script", required=False)
@_spec_options
@click.option(
    "--only", multiple=True, metavar="NAME", help="Only this property; repeatable."
)
@click.option("--list", "show_names", is_flag=True, help="Show the properties.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def verify_command(
    ctx: click.Context,
    /,
    script: str | None,
    only: tuple[str, ...],
    show_names: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Show that a script keeps the numerical contract, by running it.

    SCRIPT is one that msgen wrote and you may have changed since; without it, the
    script that the options describe is verified. The exit status is 0 if all
    properties hold that apply. With --device Ascend on a machine without an NPU, the
    script is not executed: its calls and an Ascend dry run are checked, and the exit
    status is 3 if both pass.

    Example: msgen verify train.py --only resume
    """
    from generator.verify import command

    if show_names:
        command.list_properties()
        return 0
    command.check_names(only)
    values = {name: value for name, value in options.items() if value is not None}
    if script is None:
        spec = TrainingSpec(**values)
        _check(ctx, spec, [], [])
        return command.verify_spec(spec, only, _device(values), as_json)
    chosen = [option.flag for option in OPTIONS if option.field in values]
    wrong = ctx.meta.get("generator.wrong", {})
    if {*chosen, *wrong} - {"--device"}:
        words = ", ".join(sorted({*chosen, *wrong} - {"--device"}))
        raise click.UsageError(f"{words} describes a script, and {script} is one.", ctx)
    if wrong:
        raise click.UsageError(wrong["--device"].reason, ctx)
    return command.verify_script(script, only, _device(values), as_json)


def _device(values: dict[str, Any]) -> str | None:
    """The device to verify on; "auto" leaves it to the script."""
    device = values.get("device")
    return None if device == "auto" else device


def _close_stdout() -> None:
    try:
        sys.stdout.close()
    except OSError:
        return


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit status 0, 1 (refused or failed) or 2 (wrong usage).

    What passes as far as it can be checked here ends with 3 (see ``verify``).
    """
    try:
        status = cli.main(arguments, prog_name="msgen", standalone_mode=False) or 0
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        click.echo("msgen: stopped, nothing was written", err=True)
        status = 1
    except MsgenError as error:
        click.echo(f"msgen: {error}", err=True)
        status = 2 if isinstance(error, WrongUsage) else 1
    except OSError as error:  # standard output closed or its disk full
        status = 1
        _close_stdout()
        click.echo(f"msgen: {error.strerror or error}", err=True)
    sys.exit(status)
