"""Solves packing instances, one JSON object a line, with OR-Tools CP-SAT and prints the least price of each.

An instance says what must be placed and where it may go; see judge_test.go. The answer to one that cannot be placed is
-1, to one that is not solved in a minute -2.
"""

import json
import sys

from ortools.sat.python import cp_model


def least(instance):
    model = cp_model.CpModel()
    items = instance["items"]
    placed = [[] for _ in items]
    taken = [[] for _ in (instance["supplies"] or [])]
    bought = [[] for _ in instance["pools"]]
    sources = {}
    total = []

    def add_bin(capacity, may, used, source):
        inside = []
        for i, item in enumerate(items):
            if may[i]:
                n = model.new_int_var(0, item["count"], "")
                placed[i].append(n)
                inside.append((i, n))
                if source:
                    sources.setdefault(source, []).append((i, n))
        for r, c in enumerate(capacity):
            model.add(sum(items[i]["size"][r] * n for i, n in inside) <= c * used)
        for i, n in inside:
            if items[i]["apart"]:
                model.add(sum(m for j, m in inside if items[j]["group"] == items[i]["group"]) <= items[i]["apart"]).only_enforce_if(here(n))
            model.add(n <= items[i]["count"] * used)

    def here(n):
        b = model.new_bool_var("")
        model.add(n >= 1).only_enforce_if(b)
        model.add(n == 0).only_enforce_if(b.negated())
        return b

    for node in (instance["nodes"] or []):
        add_bin(node["capacity"], node["may"], 1, node["source"])
    for bin_type in instance["types"]:
        before = None
        for _ in range(bin_type["most"]):
            used = model.new_bool_var("")
            if before is not None:
                model.add_implication(used, before)
            before = used
            add_bin(bin_type["capacity"], bin_type["may"], used, bin_type["source"])
            total.append(bin_type["price"] * used)
            if bin_type["supply"] >= 0:
                taken[bin_type["supply"]].append(bin_type["takes"] * used)
            bought[bin_type["pool"]].append((bin_type, used))
    for i, item in enumerate(items):
        model.add(sum(placed[i]) == item["count"])
    for s, n in enumerate((instance["supplies"] or [])):
        model.add(sum(taken[s]) <= n)
    for d in (instance["spread"] or []):
        for held in sources.values():
            model.add(sum(d["counts"][i] * n for i, n in held) <= d["most"])
    for p, pool in enumerate(instance["pools"]):
        if pool["nodes"] >= 0:
            model.add(sum(used for _, used in bought[p]) <= pool["nodes"])
        if pool["price"] >= 0:
            model.add(sum(bin_type["price"] * used for bin_type, used in bought[p]) <= pool["price"])
        if pool["limit"] >= 0:
            model.add(sum(bin_type["usage"] * used for bin_type, used in bought[p]) <= pool["limit"])
    model.minimize(sum(total))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 60
    status = solver.solve(model)
    if status == cp_model.OPTIMAL:
        return round(solver.objective_value)
    return -1 if status == cp_model.INFEASIBLE else -2


for line in sys.stdin:
    print(least(json.loads(line)), flush=True)
