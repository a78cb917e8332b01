"""Steps: which are whole, where their time went, how much they vary."""
