"""Rules for stepscope that only we need. stepscope finds `RULES` by the entry point `acme`."""

from acme_stepscope_rules import checkpoint_in_step

STEPSCOPE_API = 1
"""The version of stepscope's rule API that these are written for."""
RULES = (checkpoint_in_step.RULE,)
