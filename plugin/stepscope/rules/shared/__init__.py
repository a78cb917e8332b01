"""Evidence, claims and fixes that several rules share."""
