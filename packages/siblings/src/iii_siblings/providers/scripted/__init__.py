"""The scripted provider: any behaviour of a model without a network, and the demo (siblings 17.4)."""

from iii_siblings.providers.scripted.worker import ScriptedProvider, install

__all__ = ["ScriptedProvider", "install"]
