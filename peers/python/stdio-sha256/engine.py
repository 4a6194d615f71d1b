"""A reference engine: it performs an operation in its own process, times it there, and speaks one line of JSON each way.

Put your own operations into the table: a case's name without its size, and what makes a result from the input.
"""

import hashlib
import json
import platform
import sys
import time


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


OPERATIONS = {
    "digest": lambda given: sha256(given["note"]),
}


def perform(call):
    operation = OPERATIONS.get(call["case"].split("/")[0])
    if operation is None:
        return {"id": call["id"], "error": f"no case {call['case']}"}
    begin = time.perf_counter_ns()
    result = operation(call["input"])
    ns = time.perf_counter_ns() - begin
    return {"id": call["id"], "ns": ns, "digest": sha256(result)}


def answer(line):
    call = None
    try:
        call = json.loads(line)
        return perform(call)
    except Exception as e:
        return {"id": call.get("id") if isinstance(call, dict) else None, "error": repr(e)}


def say(value):
    print(json.dumps(value), flush=True)


say(
    {
        "ready": "stdio:",
        "version": platform.python_version(),
        "name": "python-sha256",
        "language": "python",
        "sdk": "hashlib",
    }
)
for line in sys.stdin:
    if line.strip() != "stats":
        say(answer(line))
