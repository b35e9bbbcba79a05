"""Step ranges of serving engines, from the scheduler's batch that their runner is given: execute_context_…, as vLLM writes it.

Each engine is one row of ENGINES. A runner is left alone, with one line that says so, where it is not what its row expects.
"""
import functools
import inspect
import sys
import threading
from typing import Callable, NamedTuple, Optional


class Engine(NamedTuple):
    module: str  # defines the runner's class
    runner: str
    step: str  # method of the runner: a step begins
    batch: str  # its first parameter
    count: Callable  # batch -> Counts, or None: no step
    last: str  # method that may follow and is the end of the step, in versions that have it
    ends: Callable  # what `step` returned -> whether `last` does not follow
    startup: tuple = ()  # methods within which batches are made up: no steps
    part_of_step: Callable = lambda runner: False  # whether this runner works for the step of another


class Counts(NamedTuple):
    """Sequences and their new tokens, of prefill and of decode."""

    prefill: int
    prefill_tokens: int
    decode: int
    decode_tokens: int

    def text(self):
        return "execute_context_%d(%d)_generation_%d(%d)" % self


# ---- vLLM, V1 engine


def _count_vllm(scheduler_output):
    """From SchedulerOutput of 0.8 and later. A sequence decodes once it has given a token."""
    cached = scheduler_output.scheduled_cached_reqs
    new = {request.req_id for request in scheduler_output.scheduled_new_reqs}
    in_prefill = getattr(cached, "is_context_phase", None)
    if in_prefill is None:
        # Not told before 0.12: then it is one of whose tokens more are scheduled than a decode and its drafts have.
        drafts = scheduler_output.scheduled_spec_decode_tokens
        scheduled = scheduler_output.num_scheduled_tokens

        def in_prefill(request):
            return scheduled[request] > 1 + len(drafts.get(request, ()))

    counts = [0, 0, 0, 0]
    for request, tokens in scheduler_output.num_scheduled_tokens.items():
        at = 0 if request in new or in_prefill(request) else 2
        counts[at] += 1
        counts[at + 1] += tokens
    return Counts(*counts) if any(counts) else None


# ---- SGLang


def _count_sglang(forward_batch):
    """From ForwardBatch of 0.4 and later."""
    mode = forward_batch.forward_mode
    sequences = forward_batch.batch_size
    if mode.is_idle():
        return None
    if mode.is_decode() or mode.is_target_verify():
        return Counts(0, 0, sequences, len(forward_batch.input_ids))
    tokens = forward_batch.extend_num_tokens or len(forward_batch.input_ids)
    if not mode.is_mixed():
        return Counts(sequences, tokens, 0, 0)
    # The running sequences are extended by one token each.
    decode = sum(length == 1 for length in forward_batch.extend_seq_lens_cpu)
    return Counts(sequences - decode, tokens - decode, decode, decode)


ENGINES = (
    Engine("vllm.v1.worker.gpu_worker", "Worker", "execute_model", "scheduler_output", _count_vllm, "sample_tokens",
           lambda output: output is not None, ("determine_available_memory", "compile_or_warm_up_model")),
    Engine("sglang.srt.model_executor.model_runner", "ModelRunner", "forward", "forward_batch", _count_sglang, "sample",
           lambda output: False, ("initialize", "__init__"), lambda runner: runner.is_draft_worker),
)

NAMES = tuple(engine.module for engine in ENGINES)


# ---- hooking


class _Steps(threading.local):
    open = False  # a step range of this thread
    startup = 0  # open calls of startup methods


class EngineSteps:
    """Hooks the runners of the engines. `hook`: the extension lamina_hook; `say`: takes a line for the user."""

    def __init__(self, hook, say):
        self.hook, self.say = hook, say
        self.here = _Steps()
        self.off = False
        self.engines = list(ENGINES)

    def install_new(self, is_imported):
        """Hooks the runners of engines that have been imported since."""
        for engine in [engine for engine in self.engines if is_imported(engine.module)]:
            self.engines.remove(engine)
            self.install(engine, sys.modules[engine.module])

    def install(self, engine, module):
        """Never harms the call that it runs in."""
        try:
            self._install(engine, module)
        except Exception as error:
            self.say(f"steps of {engine.module} are not found: {type(error).__name__}: {error}")

    def _install(self, engine, module):
        runner = getattr(module, engine.runner, None)
        name = f"{engine.module}.{engine.runner}.{engine.step}"
        step = getattr(runner, engine.step, None)
        if not inspect.isfunction(step) or list(inspect.signature(step).parameters)[1:2] != [engine.batch]:
            version = getattr(sys.modules.get(engine.module.partition(".")[0]), "__version__", "this version")
            self.say(f"{name} of {version} does not take a {engine.batch}: its steps are not found; name them by NVTX ranges phase:NAME")
            return
        setattr(runner, engine.step, self._step(engine, step))
        if inspect.isfunction(getattr(runner, engine.last, None)):
            setattr(runner, engine.last, self._last(getattr(runner, engine.last)))
        for method in engine.startup:
            if inspect.isfunction(getattr(runner, method, None)):
                setattr(runner, method, self._startup(getattr(runner, method)))

    def _step(self, engine, original):
        @functools.wraps(original)
        def step(runner, *arguments, **named):
            if self.here.startup or self.off or engine.part_of_step(runner):
                return original(runner, *arguments, **named)
            self._begin(engine, arguments[0] if arguments else named.get(engine.batch))
            goes_on = False
            try:
                output = original(runner, *arguments, **named)
                goes_on = not engine.ends(output)
                return output
            finally:
                if not goes_on:
                    self._end()

        return step

    def _last(self, original):
        @functools.wraps(original)
        def last(*arguments, **named):
            try:
                return original(*arguments, **named)
            finally:
                if not self.here.startup:
                    self._end()

        return last

    def _startup(self, original):
        @functools.wraps(original)
        def startup(*arguments, **named):
            self.here.startup += 1
            try:
                return original(*arguments, **named)
            finally:
                self.here.startup -= 1

        return startup

    def _begin(self, engine, batch):
        self._end()
        try:
            counts = engine.count(batch)
        except Exception as error:  # the batch is another than this engine's versions are known to have
            self.off = True
            self.say(f"steps of {engine.module} are not found: {type(error).__name__}: {error}")
            return
        if counts:
            self.hook.open_step(counts.text())
            self.here.open = True

    def _end(self):
        if self.here.open:
            self.here.open = False
            self.hook.close_step()
