"""Jobs with faults that can be switched on, run in turns with and without them.

`job` has what a script needs, `turns` measures a pair, `python -m pairs` all of them. Each other
module is a family of pairs, with these names:

    FAULTS      name of each fault, with the rules that should name it
    train       the job, with the faults of a set
    PAIRS       the faults of each pair; its fix is the same job without them
    BEHIND      optional: by pair, faults that stay on in both runs
    samples     optional: samples of a step with the faults of a set, where a fault changes it
    RANKS       optional: number of processes; `train` is called in each, in a gloo group
    THREADS     optional: torch's threads in each process, 1 by default
    STACKS      optional: whether the traces have Python stacks, False by default
"""
