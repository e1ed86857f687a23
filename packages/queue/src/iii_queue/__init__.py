"""The queue provider of the iii platform: part of the embedded engine, and a worker of its own on a real one."""

from iii_queue.provider import QueueProvider, install
from iii_queue.tables import FAMILY

__all__ = ["FAMILY", "QueueProvider", "install"]
