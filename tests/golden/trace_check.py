"""Checks a timeline against the Trace Event Format: `trace_check.py FILE...` (.json or .json.gz), and what viewers make of it.

The format is the Chromium project's document of that name. Beyond it: what ui.perfetto.dev drops, slices of one track that
overlap without nesting, and arrows that lack one end or do not point at a slice.
"""
import bisect
import collections
import gzip
import json
import sys
from decimal import Decimal

REQUIRED = {  # by phase of an event
    "B": {"name", "cat", "ts", "pid", "tid"},
    "E": {"ts", "pid", "tid"},
    "X": {"name", "cat", "ts", "dur", "pid", "tid"},
    "i": {"name", "cat", "ts", "pid", "tid", "s"},
    "s": {"name", "cat", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ts", "pid", "tid", "id", "bp"},
    "M": {"name", "pid", "tid", "args"},
}
# Those of catapult's color_scheme.html that the writer may use: another name ends the import.
COLOURS = {
    "thread_state_uninterruptible", "thread_state_iowait", "thread_state_running", "thread_state_runnable", "thread_state_unknown",
    "background_memory_dump", "light_memory_dump", "detailed_memory_dump", "generic_work", "good", "bad", "terrible", "yellow", "olive",
    "rail_response", "rail_animation", "rail_idle", "rail_load", "startup", "heap_dump_child_node_arrow", "cq_build_running",
    "cq_build_passed", "cq_build_failed",
}
Slice = collections.namedtuple("Slice", "begin end name category args order")


class Timeline:
    """A parsed file. Times are whole nanoseconds; `problems` says what is wrong with it."""

    def __init__(self, data):
        self.problems = []
        self.slices = collections.defaultdict(list)  # by track
        self.instants = collections.defaultdict(list)
        self.flows = collections.defaultdict(dict)  # by id, then by phase
        self.names = {}  # of tracks (pid, tid) and processes (pid)
        self.metadata = collections.Counter()
        self._open = collections.defaultdict(list)
        self._last = {}
        self._orders = 0
        parsed = json.loads(data, parse_float=Decimal, object_pairs_hook=self._object)
        if parsed.get("displayTimeUnit") not in ("ns", "ms"):
            self.problem("displayTimeUnit is neither ns nor ms")
        self.about = parsed.get("otherData", {})
        for event in parsed["traceEvents"]:
            self._add(event)
        for track, opened in self._open.items():
            if opened:
                self.problem(f"{len(opened)} slices of {track} never end")
        self._check_nesting()
        self._check_flows()
        self._check_names()

    def problem(self, text):
        self.problems.append(text)

    def _object(self, pairs):
        if len(dict(pairs)) != len(pairs):
            self.problem(f"a key comes twice: {pairs}")
        return dict(pairs)

    def _nanoseconds(self, event, key):
        ns = Decimal(event[key]) * 1000
        if ns != int(ns) or ns < 0:
            self.problem(f"{key} is no whole number of nanoseconds: {event}")
        if float(ns) >= 2**53:
            self.problem(f"{key} does not fit a double: {event}")
        return int(ns)

    def _add(self, event):
        phase = event.get("ph")
        missing = REQUIRED.get(phase, {"known ph"}) - set(event)
        if missing:
            return self.problem(f"lacks {sorted(missing)}: {event}")
        if event.get("cname", "olive") not in COLOURS:
            self.problem(f"unknown colour: {event}")
        track = (event["pid"], event["tid"])
        if phase == "M":
            return self._add_metadata(event, track)
        time = self._nanoseconds(event, "ts")
        if phase in "BE":
            if time < self._last.get(track, 0):
                self.problem(f"moves backward in time: {event}")
            self._last[track] = time
        if phase == "B":
            self._orders += 1
            self._open[track].append((time, self._orders, event))
        elif phase == "E":
            if not self._open[track]:
                return self.problem(f"ends nothing: {event}")
            begin, order, opened = self._open[track].pop()
            self._add_slice(track, begin, time, opened, order)
        elif phase == "X":
            self._add_slice(track, time, time + self._nanoseconds(event, "dur"), event)
        elif phase == "i":
            self.instants[track].append((time, event["name"]))
        else:
            if phase in self.flows[event["id"]]:
                self.problem(f"second {phase} of an arrow: {event}")
            self.flows[event["id"]][phase] = (track, time)

    def _add_metadata(self, event, track):
        self.metadata[(event["name"], track if event["name"].startswith("thread") else event["pid"])] += 1
        if event["name"] == "thread_name":
            self.names[track] = event["args"]["name"]
        if event["name"] == "process_name":
            self.names[event["pid"]] = event["args"]["name"]

    def _add_slice(self, track, begin, end, event, order=0):
        self.slices[track].append(Slice(begin, end, event["name"], event["cat"], event.get("args", {}), order))

    def _check_nesting(self):
        for track, slices in self.slices.items():
            slices.sort(key=lambda s: (s.begin, -s.end, s.order))
            around = []
            for piece in slices:
                while around and around[-1].end <= piece.begin:
                    around.pop()
                if around and around[-1].end < piece.end:
                    self.problem(f"overlap on {track}: {around[-1]} and {piece}")
                around.append(piece)

    def _check_flows(self):
        begins = {track: {s.begin for s in slices} for track, slices in self.slices.items()}
        marks = {track: {time for time, _ in instants} for track, instants in self.instants.items()}
        for number, ends in self.flows.items():
            if set(ends) != {"s", "f"}:
                self.problem(f"arrow {number} has {sorted(ends)} only")
                continue
            (start_track, start), (end_track, end) = ends["s"], ends["f"]
            if start > end:
                self.problem(f"arrow {number} goes back in time")
            if start not in marks.get(start_track, ()):
                self.problem(f"arrow {number} begins at no mark")
            if end not in begins.get(end_track, ()):
                self.problem(f"arrow {number} ends at no slice")

    def _check_names(self):
        for track in set(self.slices) | set(self.instants):
            for key in ("thread_name", "thread_sort_index"):
                if self.metadata[(key, track)] != 1:
                    self.problem(f"{track} has {self.metadata[(key, track)]} {key}")
            for key in ("process_name", "process_sort_index"):
                if self.metadata[(key, track[0])] != 1:
                    self.problem(f"process {track[0]} has {self.metadata[(key, track[0])]} {key}")

    def tracks(self):
        """(process, track) names to slices."""
        return {(self.names[track[0]], self.names[track]): slices for track, slices in self.slices.items()}


    def outline(self, limit):
        """Each track with its first slices, a line each: begin and duration in us, what it is, and how deep it lies."""
        lines = []
        for (process, name), slices in sorted(self.tracks().items()):
            lines.append(f"== {process}: {name}: {len(slices)} slices")
            around = []
            for piece in slices[:limit]:
                while around and around[-1] <= piece.begin:
                    around.pop()
                times = f"{piece.begin / 1000:14.3f} {(piece.end - piece.begin) / 1000:12.3f}"
                lines.append(f"{times} {piece.category:7} {'  ' * len(around)}{piece.name}")
                around.append(piece.end)
        for number, ends in sorted(self.flows.items())[:limit]:
            (start_track, start), (end_track, end) = ends["s"], ends["f"]
            text = "; ".join(f"{key}: {value}" for key, value in self.slice_at(end_track, end).args.items())
            lines.append(f"-> {number}: {self.names[start_track]} {start / 1000:.3f} to {self.names[end_track]} {end / 1000:.3f}")
            lines.append(f"   {text}")
        return "".join(line + "\n" for line in lines)

    def slice_at(self, track, begin):
        """The innermost slice that begins at this time."""
        return [piece for piece in self.slices[track] if piece.begin == begin][-1]


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        return file.read()


def around(slices, moment):
    """Names of the slices of a track at a moment, outermost first."""
    last = bisect.bisect_right([s.begin for s in slices], moment)
    return [s.name for s in slices[:last] if s.begin <= moment < s.end]


def main():
    failed = False
    for path in sys.argv[1:]:
        timeline = Timeline(read(path))
        for problem in timeline.problems[:20]:
            print(f"{path}: {problem}")
        failed |= bool(timeline.problems)
        counts = {name: len(slices) for name, slices in timeline.tracks().items()}
        print(f"{path}: {len(timeline.problems)} problems, {len(timeline.flows)} arrows, slices: {counts}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
