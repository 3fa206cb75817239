"""Lets Principal Mapper, which others wrote, decide on requests: lines of JSON with action, resource and context. It prints those that are not allowed."""
import collections
import collections.abc
import json
import sys

# Principal Mapper was written for a Python that had these names here.
collections.Mapping, collections.MutableMapping = collections.abc.Mapping, collections.abc.MutableMapping

from principalmapper.common import Policy  # noqa: E402
from principalmapper.querying.local_policy_simulation import policy_has_matching_statement  # noqa: E402
from principalmapper.util.case_insensitive_dict import CaseInsensitiveDict  # noqa: E402

with open(sys.argv[1], encoding="utf-8") as f:
    policy = Policy("arn:aws:iam::111122223333:policy/joinery", "joinery", json.load(f))
for line in sys.stdin:
    r = json.loads(line)
    if not policy_has_matching_statement(policy, "Allow", r["action"], r["resource"], CaseInsensitiveDict(r["context"])):
        sys.stdout.write(line)
