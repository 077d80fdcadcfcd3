"""`onesided doctor`: what this installation is made of, for a person and for a bug report."""

from typing import Annotated

import typer

from onesided.cli.options import Json


def doctor(
    as_json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only what will not work.")
    ] = False,
) -> None:
    """Tell versions, processor, threads, backbones and extras, and what will not work.

    Put all of it into a bug report: it names none of your files. The exit code is 2 if something
    that every command needs is missing or too old.

    Example: onesided doctor
    """
    from onesided.cli.show import print_json, say
    from onesided.jobs.doctor import examine

    found = examine()
    if as_json:
        print_json(found.to_json())
    elif not quiet:
        say(f"onesided {found.version}")
        for name, value in found.machine.items():
            say(f"  {name}: {value}")
        say("Libraries:")
        for one in found.libraries:
            say(f"  {one.name} {one.version or 'missing'} (needed: {one.needed or 'any'})")
        say("Extras:")
        for extra, parts in found.extras.items():
            here = ", ".join(f"{one.name} {one.version or 'missing'}" for one in parts)
            say(f"  {extra}: {here}")
        say("Backbones:")
        for name, words in found.backbones.items():
            say(f"  {name}: {words}")
        say("In a bug report, add the command that you gave and all that it printed.")
    for sentence in found.problems if not as_json else ():
        say(f"Problem: {sentence}")
    if not all(one.fits for one in found.libraries):
        raise typer.Exit(2)
