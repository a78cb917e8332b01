"""Flame graphs: trees of calls merged by name, with any measure, and the operations on them.

`flame_tree` is the common type; `call_flame_graphs`, `module_flame_graph` and `memory_flame_graph`
make trees of a trace; `inverted_tree`, `pruning`, `function_totals` and `tree_diff` are operations
on any tree.
"""
