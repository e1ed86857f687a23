"""structlog without its renderer for consoles, which would import rich and pygments: a sixth of the time to start.

structlog does without rich where it is not installed, so for the time of this import it is not.
"""

from __future__ import annotations

import sys
from typing import Any, cast

_hidden = "rich" not in sys.modules
if _hidden:
    sys.modules["rich"] = cast("Any", None)
try:
    import structlog
finally:
    if _hidden:
        del sys.modules["rich"]

__all__ = ["structlog"]
