"""Flame graphs: trees of calls merged by name, with any measure, and the operations on them.

`flame_tree` is the common type with totals; `flame_graphs` makes trees of a trace; `inverted_tree`,
`pruning` and `tree_diff` are operations on any tree.
"""
