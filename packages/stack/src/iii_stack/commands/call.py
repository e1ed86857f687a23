"""`iii-stack call`: one call of a function on the bus."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from iii_stack.errors import WrongUsage
from iii_stack.output import AsJson, print_json
from iii_stack.reach import Reach, with_bus


def call(
    function: Annotated[str, Parameter(help="Function id, such as `session::list`.")],
    data: Annotated[
        str, Parameter(help="Its argument as JSON; `-` reads it from stdin.", allow_leading_hyphen=True)
    ] = "{}",
    /,
    *,
    reach: Reach = Reach(),
    timeout: Annotated[float, Parameter(help="Seconds to wait for the answer.", validator=Number(gt=0))] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Call a function of the bus and print its answer as JSON.

    Try:

        iii-stack call engine::functions::list

        iii-stack call session::get '{"session_id": "s_1"}'

        echo '{"limit": 5}' | iii-stack call session::list -
    """
    argument = _argument(sys.stdin.read() if data == "-" else data)
    print_json(with_bus(reach, lambda bus: bus.call(function, argument, timeout_ms=int(timeout * 1000))))


def _argument(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise WrongUsage(
            "invalid_json", f"the argument is not JSON: {error}", hint='quote it: \'{"key": "value"}\''
        ) from None
