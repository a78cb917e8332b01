# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Order and times of a graph's points; `scheduler.py` has the same in Python."""

import numpy as np


def topological_order(
    const long long[:] first, const long long[:] target, const long long[:] pending
):
    cdef Py_ssize_t count = pending.shape[0], done = 0, ready = 0, point, edge, following
    order = np.empty(count, dtype=np.int64)
    cdef long long[:] queue = order
    cdef long long[:] left = np.array(pending)
    with nogil:
        for point in range(count):
            if left[point] == 0:
                queue[ready] = point
                ready += 1
        while done < ready:
            point = queue[done]
            done += 1
            for edge in range(first[point], first[point + 1]):
                following = target[edge]
                left[following] -= 1
                if left[following] == 0:
                    queue[ready] = following
                    ready += 1
    return order[:ready]


def times(
    const long long[:] first_edge,
    const long long[:] source,
    const long long[:] weight_ns,
    const long long[:] recorded_ns,
):
    cdef Py_ssize_t count = recorded_ns.shape[0], point, edge
    cdef long long latest, ready
    result = np.array(recorded_ns)
    cdef long long[:] time_ns = result
    with nogil:
        for point in range(count):
            if first_edge[point] < first_edge[point + 1]:
                edge = first_edge[point]
                latest = time_ns[source[edge]] + weight_ns[edge]
                for edge in range(first_edge[point] + 1, first_edge[point + 1]):
                    ready = time_ns[source[edge]] + weight_ns[edge]
                    if ready > latest:
                        latest = ready
                time_ns[point] = latest
    return result


def path(
    const long long[:] first_edge,
    const long long[:] source,
    const long long[:] weight_ns,
    const long long[:] time_ns,
    Py_ssize_t end,
):
    cdef Py_ssize_t point = end, edge, binding = 0, count = 0
    result = np.empty(end + 1, dtype=np.int64)
    cdef long long[:] edges = result
    with nogil:
        while binding >= 0:
            binding = -1
            for edge in range(first_edge[point], first_edge[point + 1]):
                if time_ns[source[edge]] + weight_ns[edge] != time_ns[point]:
                    continue
                if binding < 0 or time_ns[source[edge]] >= time_ns[source[binding]]:
                    binding = edge
            if binding >= 0:
                edges[count] = binding
                count += 1
                point = source[binding]
    return result[:count].copy()
