"""Solves packing instances, one JSON object a line, with OR-Tools CP-SAT and prints the lowest objective of each.

An instance says what must be placed and where it may go; see judge_test.go. The answer to one that cannot be placed is
-1, to one that is not solved in a minute -2.
"""

import json
import math
import sys

from ortools.sat.python import cp_model


def lowest(instance):
    model = cp_model.CpModel()
    items = instance["items"]
    types = instance["types"]
    placed = [[] for _ in items]
    taken = [[] for _ in instance["supplies"]]
    bought = [[] for _ in instance["pools"]]
    sources = {}
    total = []

    def at_most(terms, limit, times=1):
        """Adds: the sum of the terms (factor, variable, largest value) is at most limit * times. Factors may be as large as integers."""
        terms = [(f, x, high) for f, x, high in terms if f > 0 and high > 0]
        if not terms:
            return None
        unit = math.gcd(*(f for f, _, _ in terms))
        limit = min(max(limit, 0) // unit, sum(f // unit * high for f, _, high in terms))
        return model.add(sum(f // unit * x for f, x, _ in terms) <= limit * times)

    def keeps_limits(inside, tags, limits, if_true=None):
        """The items inside keep their limits and, for tags that they add, those of the empty bin."""
        def enforce(rule, *conditions):
            conditions = [c for c in conditions if c is not None]
            if rule is not None and conditions:
                rule.only_enforce_if(*conditions)

        def add(tag, most, *conditions):
            base = tags.get(tag, 0)
            terms = [(items[i]["tags"].get(tag, 0), n, items[i]["count"]) for i, n, _ in inside]
            if most < base:
                none = model.add(sum(here for _, _, here in inside if here is not None) * 0 >= 1)
                enforce(none, *conditions)
                return
            enforce(at_most(terms, most - base), *conditions)

        for i, n, here in inside:
            for limit in items[i]["limits"]:
                add(limit["tag"], limit["max"], here, if_true)
            for limit in limits:
                if items[i]["tags"].get(limit["tag"], 0) > 0:
                    add(limit["tag"], limit["max"], here, if_true)

    def add_bin(b, used):
        inside = []
        for i, item in enumerate(items):
            if b["may"][i] and item["count"] > 0:
                n = model.new_int_var(0, item["count"], "")
                here = model.new_bool_var("")
                model.add(n >= 1).only_enforce_if(here)
                model.add(n == 0).only_enforce_if(here.negated())
                model.add_implication(here, used)
                placed[i].append(n)
                inside.append((i, n, here))
                if b["source"]:
                    sources.setdefault(b["source"], []).append((i, n))
        for r, c in enumerate(b["capacity"]):
            at_most([(items[i]["size"][r], n, items[i]["count"]) for i, n, _ in inside], c)
        keeps_limits(inside, b["tags"], b["limits"])
        return inside

    def shows(bin_type, used, inside):
        """The choices of the pool that hold the contents show enough values."""
        for minimum in instance["pools"][bin_type["pool"]]["minimums"]:
            by_value = {}
            for other in types:
                if other["pool"] != bin_type["pool"]:
                    continue
                holds = model.new_bool_var("")
                for i, _, here in inside:
                    if not other["may"][i]:
                        model.add_implication(holds, here.negated())
                for r, c in enumerate(other["capacity"]):
                    rule = at_most([(items[i]["size"][r], n, items[i]["count"]) for i, n, _ in inside], c)
                    if rule is not None:
                        rule.only_enforce_if(holds)
                keeps_limits(inside, other["tags"], other["limits"], holds)
                for value in other["values"].get(minimum["key"], []):
                    by_value.setdefault(value, []).append(holds)
            shown = []
            for holding in by_value.values():
                value = model.new_bool_var("")
                model.add_bool_or(holding).only_enforce_if(value)
                shown.append(value)
            model.add(sum(shown) >= minimum["count"] * used)

    always = model.new_constant(1)
    for node in instance["nodes"]:
        add_bin(node, always)
    for bin_type in types:
        before = None
        for _ in range(bin_type["most"]):
            used = model.new_bool_var("")
            if before is not None:
                model.add_implication(used, before)
            before = used
            inside = add_bin(bin_type, used)
            if instance["pools"][bin_type["pool"]]["minimums"]:
                shows(bin_type, used, inside)
            total.append(bin_type["objective"] * used)
            if bin_type["supply"] >= 0:
                taken[bin_type["supply"]].append(bin_type["takes"] * used)
            bought[bin_type["pool"]].append((bin_type, used))
    for i, item in enumerate(items):
        model.add(sum(placed[i]) == item["count"])
    for s, n in enumerate(instance["supplies"]):
        model.add(sum(taken[s]) <= n)
    for d in instance["spread"]:
        for source, held in sources.items():
            at_most([(d["counts"][i], n, items[i]["count"]) for i, n in held], d["most"] - d["placed"].get(source, 0))
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
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.validate())
    return -1 if status == cp_model.INFEASIBLE else -2


for line in sys.stdin:
    print(lowest(json.loads(line)), flush=True)
