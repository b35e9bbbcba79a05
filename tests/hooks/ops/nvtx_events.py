"""Reads what nvtx_log.c writes: events of a part of the program, with their nesting, and whether pushes have their pops."""
import os
from collections import defaultdict, namedtuple

Event = namedtuple("Event", "kind domain thread text depth")


def _parse(lines):
    depth = defaultdict(int)
    for line in lines:
        kind, domain, thread, *text = line.rstrip("\n").split(" ", 3)
        stack = (domain, thread)
        if kind == "pop":
            depth[stack] -= 1
        yield Event(kind, domain, int(thread), text[0] if text else "", depth[stack])
        if kind == "push":
            depth[stack] += 1


def record(run):
    """What `run` emits. Fails unless each push has a pop, and each start an end."""
    with open(os.environ["NVTX_LOG"]) as log:
        log.seek(0, os.SEEK_END)
        run()
        events = [event for event in _parse(log) if event.kind != "register"]
    count = defaultdict(int)
    for event in events:
        assert event.kind != "pop-empty", "a pop with nothing open"
        assert event.depth >= 0, f"a pop too many: {event}"
        count[event.domain, event.thread] += (event.kind == "push") - (event.kind == "pop")
    assert not any(count.values()), f"not balanced: {dict(count)}"
    starts = sum(event.kind == "start" for event in events) - sum(event.kind == "end" for event in events)
    assert starts == 0, "starts without an end"
    return events


def pushes(run, domain="lamina", max_depth=99):
    return [event.text for event in record(run)
            if event.kind == "push" and event.domain == domain and event.depth <= max_depth]


def tree(run, domain="lamina", only=lambda text: True):
    """The texts pushed, each with its parent among the chosen ones: [(text, parent)]."""
    out, stacks = [], defaultdict(list)
    for event in record(run):
        if event.domain != domain or event.kind not in ("push", "pop"):
            continue
        stack = stacks[event.thread]
        if event.kind == "pop":
            stack.pop()
            continue
        if only(event.text):
            out.append((event.text, next((text for text in reversed(stack) if only(text)), None)))
        stack.append(event.text)
    return out
