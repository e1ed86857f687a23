"""The command line `iii-stack`: commands by name, and how every one of them ends (design, "Decided interfaces").

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Modules of commands import what they
work with when they run, so that help and errors are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App

from iii_kit.errors import BusError
from iii_stack.commands.call import call
from iii_stack.commands.chat import chat
from iii_stack.commands.doctor import doctor
from iii_stack.commands.eval import app as evaluation
from iii_stack.commands.queue import queue
from iii_stack.commands.sessions import sessions
from iii_stack.commands.show import show
from iii_stack.commands.siblings import siblings
from iii_stack.commands.status import status
from iii_stack.commands.stop import stop
from iii_stack.commands.up import up
from iii_stack.errors import StackError, of_bus
from iii_stack.output import print_error

FAILED = 1
INTERRUPTED = 130

HELP = """Run the embedded iii stack, and talk to it.

An agent is a model plus the functions of the workers on the bus. Start the stack in one terminal, talk in another:

    iii-stack up
    iii-stack chat "What can you do here?"
    iii-stack sessions
"""

app = App(
    name="iii-stack",
    help=HELP,
    help_format="markdown",
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

for _command in (up, chat, call, sessions, show, status, stop, doctor, siblings, queue):
    app.command(_command)
app.command(evaluation)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    as_json = "--json" in arguments
    try:
        code = app(list(arguments))
        sys.stdout.flush()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else FAILED
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


def main() -> None:
    """Entry point."""
    sys.exit(run(sys.argv[1:]))
