"""Serving engines whose steps must be found. The packages of engines/ have the runners and batches of vLLM's and SGLang's
versions as far as the hook looks at them; the cases run their schedule, and return the ranges expected."""
import inspect
import os
import sys
from types import SimpleNamespace as Batch

import cases
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "engines"))
from sglang.srt.model_executor.model_runner import ModelRunner  # noqa: E402
from vllm.v1.worker.gpu_worker import Worker  # noqa: E402

MODEL = "Linear(weight=float32[4, 4], bias=float32[4]) @ Linear"
SAMPLER = "Identity @ Identity"


def step(prefill, prefill_tokens, decode, decode_tokens, inside=(MODEL, SAMPLER)):
    text = f"execute_context_{prefill}({prefill_tokens})_generation_{decode}({decode_tokens})"
    return [text] + [f"|{module}" for module in inside]


def steps(*each):
    return [line for one in each for line in one]


# ---- vLLM: SchedulerOutput


def vllm_0_8(new, cached, tokens, drafts={}):
    """A list of cached requests."""
    return Batch(scheduled_new_reqs=[Batch(req_id=r) for r in new], scheduled_cached_reqs=[Batch(req_id=r) for r in cached],
                 num_scheduled_tokens=tokens, scheduled_spec_decode_tokens=drafts)


def vllm_0_10(new, cached, tokens, drafts={}):
    """One object for all cached requests."""
    return Batch(scheduled_new_reqs=[Batch(req_id=r) for r in new], scheduled_cached_reqs=Batch(req_ids=list(cached)),
                 num_scheduled_tokens=tokens, scheduled_spec_decode_tokens=drafts)


def vllm_0_15(new, cached, tokens, drafts={}):
    """It tells who is in prefill: who has given no token yet. `cached`: {request: tokens given}"""
    requests = Batch(req_ids=list(cached), is_context_phase=lambda request: cached.get(request) == 0)
    return Batch(scheduled_new_reqs=[Batch(req_id=r) for r in new], scheduled_cached_reqs=requests,
                 num_scheduled_tokens=tokens, scheduled_spec_decode_tokens=drafts)


def serve_with_vllm(output):
    """A prompt in two chunks, decodes, another prompt beside, decodes with drafts, nothing scheduled."""
    worker = Worker()
    worker.serve(output(["a"], {}, {"a": 30}))
    worker.serve(output([], {"a": 0}, {"a": 20}))
    worker.serve(output([], {"a": 1}, {"a": 1}))
    worker.serve(output(["b"], {"a": 2}, {"a": 1, "b": 7}))
    worker.serve(output([], {"a": 3, "b": 1}, {"a": 3, "b": 1}, {"a": [5, 6]}))
    worker.serve(output([], {}, {}))
    return steps(step(1, 30, 0, 0), step(1, 20, 0, 0), step(0, 0, 1, 1), step(1, 7, 1, 1), step(0, 0, 2, 4))


def case_vllm_0_8():
    return serve_with_vllm(vllm_0_8)


def case_vllm_0_10():
    return serve_with_vllm(vllm_0_10)


def case_vllm_0_15():
    return serve_with_vllm(vllm_0_15)


def case_vllm_warm_up():
    """Made-up batches of the start are no steps."""
    batch = vllm_0_15(["a"], {}, {"a": 30})
    Worker().compile_or_warm_up_model(batch)
    Worker().serve(batch)
    return [MODEL, SAMPLER] + step(1, 30, 0, 0)


def case_vllm_exception():
    worker = Worker()
    try:
        worker.execute_model(scheduler_output=vllm_0_15(["a"], {}, {"a": 3}), fail=True)
    except ArithmeticError:
        worker.model(torch.ones(1, 4))  # outside
    return step(1, 3, 0, 0, [MODEL]) + [MODEL]


def case_vllm_without_sampling():
    """Of a rank that does not sample: the next step ends the one before."""
    worker = Worker()
    for _ in range(3):
        worker.execute_model(vllm_0_15([], {"a": 1}, {"a": 1}))
    worker.sample_tokens(None)
    worker.sample_tokens(None)
    return steps(*[step(0, 0, 1, 1, [MODEL])] * 2, step(0, 0, 1, 1), [SAMPLER])


def case_vllm_looks_the_same():
    assert list(inspect.signature(Worker.execute_model).parameters) == ["self", "scheduler_output", "fail"]
    assert Worker.execute_model.__doc__ == "A step." and Worker.execute_model.__name__ == "execute_model"
    return []


# ---- SGLang: ForwardBatch


def sglang(mode, sequences, tokens, lengths=None):
    modes = ("decode", "idle", "mixed", "target_verify")
    forward_mode = Batch(**{f"is_{name}": lambda name=name: name == mode for name in modes})
    extended = None if mode in ("decode", "target_verify") else tokens
    return Batch(forward_mode=forward_mode, batch_size=sequences, input_ids=torch.zeros(tokens, dtype=torch.int64),
                 extend_num_tokens=extended, extend_seq_lens_cpu=lengths)


def case_sglang():
    runner = ModelRunner()
    for batch in (sglang("extend", 2, 40), sglang("decode", 2, 2), sglang("mixed", 3, 12, [10, 1, 1]), sglang("idle", 0, 0),
                  sglang("decode", 3, 3)):
        runner.sample(runner.forward(batch), batch)
    return steps(step(2, 40, 0, 0), step(0, 0, 2, 2), step(1, 10, 2, 2), [MODEL, SAMPLER], step(0, 0, 3, 3))


def case_sglang_speculative():
    """The draft model's runs are of the step of the model that verifies."""
    target, draft = ModelRunner(), ModelRunner(is_draft_worker=True)
    for _ in range(2):
        target.forward(sglang("target_verify", 2, 8))
        draft.forward(sglang("decode", 2, 2))
    target.forward(forward_batch=sglang("idle", 0, 0))
    return steps(*[step(0, 0, 2, 8, [MODEL, f"{MODEL}#2"])] * 2, [MODEL])


# ---- versions to come


def hooked_worker(**methods):
    """(a runner with these methods instead of vLLM's, hooked; the lines that were said)"""
    import lamina_engines

    lines = []
    worker = type("Worker", (), methods)
    steps = lamina_engines.EngineSteps(None, lines.append)
    steps.install(lamina_engines.ENGINES[0], Batch(Worker=worker))
    return worker, lines


def case_another_runner():
    """It is left alone."""
    def execute_model(self, batches):
        return batches

    for methods in ({"execute_model": execute_model}, {"execute_model": 1}, {}):
        worker, lines = hooked_worker(**methods)
        assert worker.__dict__.get("execute_model") == methods.get("execute_model")
        assert len(lines) == 1 and "Worker.execute_model of" in lines[0], lines
    return []


def case_another_batch():
    """It runs without steps; said once."""
    def execute_model(self, scheduler_output):
        return scheduler_output

    worker, lines = hooked_worker(execute_model=execute_model)
    assert [worker().execute_model("batch") for _ in range(2)] == ["batch", "batch"]
    assert len(lines) == 1 and "AttributeError" in lines[0], lines
    return []


# ---- neither


def case_roots_are_no_steps_beside_an_engine():
    """Once an engine has told of a step, the input of a model is not asked."""

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 4)

        def forward(self, input_ids, past_key_values=None):
            return self.embed(input_ids)

    Decoder()(torch.zeros(2, 3, dtype=torch.int64))
    return ["Decoder @ Decoder", "|Embedding(weight=float32[10, 4]) @ Decoder.embed"]


if __name__ == "__main__":
    cases.run(globals())
