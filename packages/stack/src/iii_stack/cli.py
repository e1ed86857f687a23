"""The command line `iii-stack`: commands by name, and how every one of them ends (design, "Decided interfaces").

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Modules of commands import what they
work with when they run, so that help and errors are quick.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence

from cyclopts import App

from iii_kit.errors import BusError
from iii_stack.errors import StackError, WrongUsage, of_bus
from iii_stack.output import print_error

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

HELP = """Run the embedded iii stack, and talk to it.

An agent is a model plus the functions of the workers on the bus. Start the stack in one terminal, talk in another:

    iii-stack up
    iii-stack chat "What can you do here?"
    iii-stack sessions
"""

HELP_FLAGS = ("--help", "-h")
VERSION_FLAGS = ("--version",)

app = App(
    name="iii-stack",
    help=HELP,
    help_format="markdown",
    help_flags=HELP_FLAGS,
    version_flags=VERSION_FLAGS,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

COMMANDS = ("up", "chat", "call", "sessions", "show", "status", "stop", "doctor", "siblings", "queue")

# By their places: a command is imported when it is used, and all of them for the help.
for _command in COMMANDS:
    app.command(f"iii_stack.commands.{_command}:{_command}", name=_command)
app.command("iii_stack.commands.eval:app", name="eval")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    as_json = "--json" in arguments
    try:
        _check_order(arguments)
        if not arguments or arguments[0] in HELP_FLAGS:
            app.resolved_commands()  # their own words for the list of them
        code = app(list(arguments))
        sys.stdout.flush()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else FAILED
    except WrongUsage as error:
        print_error(error, as_json=as_json)
        return WRONG_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except StackError as error:
        print_error(error, as_json=as_json)
        return FAILED
    except BusError as error:
        print_error(of_bus(error), as_json=as_json)
        return FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code if isinstance(code, int) else 0


def _check_order(arguments: Sequence[str]) -> None:
    """Options belong to a command. Raises `WrongUsage` with the right order when they come before it."""
    if not arguments or not arguments[0].startswith("-") or arguments[0] in (*HELP_FLAGS, *VERSION_FLAGS):
        return
    place = next((place for place, word in enumerate(arguments) if word in (*COMMANDS, "eval")), None)
    right = ["COMMAND", *arguments]
    if place is not None:
        right = [arguments[place], *arguments[:place], *arguments[place + 1 :]]
    raise WrongUsage(
        "option_before_command",
        f"{arguments[0]}: options come after the command",
        hint=f"{app.name[0]} {shlex.join(right)}",
    )


def main() -> None:
    """Entry point."""
    sys.exit(run(sys.argv[1:]))
