"""Building blocks of analyses: the window, links, device and host activity, source lines."""
