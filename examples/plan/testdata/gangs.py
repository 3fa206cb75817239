"""Solves small plans with groups, one JSON object a line, with OR-Tools CP-SAT.

A group is placed whole or not at all, some in one or two zones; see gang_judge_test.go. The answer is a line of JSON: "worth", the
whole groups and their pods by priority, the highest first; "cost", the least price of a plan that is worth this; and
"same", the least price of the groups that the planner chose. A value that is not proved in time is null.
"""

import json
import sys

from ortools.sat.python import cp_model

MANY = 1000  # more pods than an instance has


class Instance:
    def __init__(self, data):
        self.model = model = cp_model.CpModel()
        self.data = data
        groups, offers = data["groups"], data["offers"]
        self.whole = [model.new_bool_var("") for _ in groups]
        zones = sorted({o["zone"] for o in offers} | {n["zone"] for n in data["nodes"]})
        at = [[model.new_bool_var("") for _ in zones] for _ in groups]
        for g, row in zip(groups, at):
            if g["zones"]:
                model.add(sum(row) <= g["zones"])
        placed = [[] for _ in groups]
        prices, limited, chosen = [], [], [[] for _ in offers]

        def hold(capacity, zone):
            """Variables for the pods of each group on a node, and limits for them."""
            inside = [model.new_int_var(0, g["count"], "") for g in groups]
            for k, g in enumerate(groups):
                placed[k].append(inside[k])
                if g["zones"]:
                    for z, name in enumerate(zones):
                        here = zone(name)
                        if here is not False:
                            model.add(inside[k] == 0).only_enforce_if([at[k][z].negated()] + ([here] if here is not True else []))
            for r in range(2):
                model.add(sum(g["size"][r] * n for g, n in zip(groups, inside)) <= capacity[r])

        for node in data["nodes"]:
            hold(node["capacity"], lambda name, zone=node["zone"]: name == zone)
        before = None
        for _ in range(data["slots"]):
            pick = [model.new_bool_var("") for _ in offers]
            model.add_at_most_one(pick)
            position = sum((k + 1) * x for k, x in enumerate(pick))
            if before is not None:
                model.add(before >= position)
            before = position
            capacity = [sum(o["capacity"][r] * x for o, x in zip(offers, pick)) for r in range(2)]
            zone_of = {}
            for name in zones:
                zone_of[name] = model.new_bool_var("")
                model.add(zone_of[name] == sum(x for o, x in zip(offers, pick) if o["zone"] == name))
            hold(capacity, lambda name: zone_of[name])
            prices.append(sum(o["price"] * x for o, x in zip(offers, pick)))
            limited.append(sum(o["capacity"][0] * x for o, x in zip(offers, pick)))
            for k, x in enumerate(pick):
                chosen[k].append(x)
        if data["limit"] > 0:
            model.add(sum(limited) <= data["limit"])
        for o, x in zip(offers, chosen):
            if o["stock"] > 0:
                model.add(sum(x) <= o["stock"])
        for k, g in enumerate(groups):
            model.add(sum(placed[k]) == g["count"] * self.whole[k])
        self.cost = sum(prices)

    def solve(self):
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = 10
        return solver if solver.solve(self.model) == cp_model.OPTIMAL else None

    def least(self):
        self.model.minimize(self.cost)
        solver = self.solve()
        return solver and round(solver.objective_value)


def best(data):
    x, worth = Instance(data), []
    for priority in sorted({g["priority"] for g in data["groups"]}, reverse=True):
        value = sum((MANY + g["count"]) * w for g, w in zip(data["groups"], x.whole) if g["priority"] == priority)
        x.model.maximize(value)
        solver = x.solve()
        if solver is None:
            return None, None
        value_is = round(solver.objective_value)
        worth += [priority, value_is // MANY, value_is % MANY]
        x.model.add(value == value_is)
    return worth, x.least()


def same(data):
    x = Instance(data)
    for w, chosen in zip(x.whole, data["chosen"]):
        x.model.add(w == int(chosen))
    return x.least()


for line in sys.stdin:
    instance = json.loads(line)
    worth, cost = best(instance)
    print(json.dumps({"worth": worth, "cost": cost, "same": same(instance)}), flush=True)
