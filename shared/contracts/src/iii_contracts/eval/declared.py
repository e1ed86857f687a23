"""Everything that eval declares (eval 3, 10): a worker serves those that it can do.

Apart from the package, so that a process that serves one function does not build the models of all others.
"""

from iii_contracts.eval import comparison, evaluators, events, experiments, upkeep

FUNCTIONS = (*comparison.FUNCTIONS, *experiments.FUNCTIONS, *evaluators.FUNCTIONS, *upkeep.FUNCTIONS)
"""Every declared function of eval."""

TRIGGERS = events.TRIGGERS
"""Every trigger type of eval."""
