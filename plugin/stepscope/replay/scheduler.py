"""Times of a graph's points: each as soon as all its edges allow."""
import numpy as np
from collections import deque

def schedule(times, source, target, weight):
    n = len(times)
    first = np.searchsorted(target, np.arange(n + 1))
    out_order = np.argsort(source, kind="stable"); out_first = np.searchsorted(source[out_order], np.arange(n + 1))
    pending = np.diff(first).tolist(); first = first.tolist(); outs = target[out_order].tolist(); of = out_first.tolist()
    src = source.tolist(); w = weight.tolist(); t = times.tolist()
    ready = deque(i for i in range(n) if not pending[i]); done = 0
    while ready:
        v = ready.popleft(); done += 1
        a, b = first[v], first[v + 1]
        if b > a: t[v] = max(t[src[e]] + w[e] for e in range(a, b))
        for e in range(of[v], of[v + 1]):
            u = outs[e]; pending[u] -= 1
            if not pending[u]: ready.append(u)
    if done < n: raise ValueError("circle", n - done)
    return np.array(t, dtype=np.int64)
