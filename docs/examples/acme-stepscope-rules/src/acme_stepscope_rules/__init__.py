"""Rules of acme for stepscope, which finds `RULES` by the entry point `acme`."""

from acme_stepscope_rules import checkpoint_in_step

STEPSCOPE_API = 1
"""Version of stepscope's rule API that these rules are written for."""
RULES = (checkpoint_in_step.RULE,)
