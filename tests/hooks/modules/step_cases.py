"""Programs whose steps must be found: each case returns the step ranges expected."""
import sys
import warnings

import cases
import torch
from torch import nn

warnings.filterwarnings("ignore")


def ids(sequences, tokens):
    return torch.zeros(sequences, tokens, dtype=torch.int64)


def prefill(sequences, tokens):
    return f"execute_context_{sequences}({tokens})_generation_0(0)"


def decode(sequences):
    return f"execute_context_0(0)_generation_{sequences}({sequences})"


class Plain(nn.Module):
    """Without a cache: gives a logit for each token of its vocabulary."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10)

    def forward(self, tokens, mask=None):
        return self.head(self.embed(tokens))


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, inputs_embeds=None):
        return self.embed(input_ids) if inputs_embeds is None else inputs_embeds


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, input_ids=None, decoder_input_ids=None, past_key_values=None):
        return self.embed(decoder_input_ids)


# ---- the cases


def case_loop_without_cache():
    """All tokens again, and one more."""
    model = Plain()
    for tokens in (5, 6, 7):
        model(ids(2, tokens))
    model(ids(2, 4))
    return [prefill(2, 10), decode(2), decode(2), prefill(2, 8)]


def case_loop_with_cache():
    model = Cached()
    model(input_ids=ids(3, 7), attention_mask=ids(3, 7))
    model(input_ids=ids(3, 1), attention_mask=ids(3, 8))
    model(attention_mask=ids(3, 9), input_ids=ids(3, 1), past_key_values=object())
    model(inputs_embeds=torch.zeros(3, 5, 4))
    return [prefill(3, 21), decode(3), decode(3), prefill(3, 15)]


def case_encoder_decoder():
    model = Seq2Seq()
    model(input_ids=ids(2, 9), decoder_input_ids=ids(2, 1))
    return [decode(2)]


def case_positional():
    model = Cached()
    model(ids(1, 4), ids(1, 4))
    return [prefill(1, 4)]


def case_no_decoder():
    """Neither pictures, nor tokens for a model that gives none, are steps."""
    nn.Linear(4, 4)(torch.ones(2, 4))
    nn.Embedding(10, 4)(ids(2, 3))
    nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3))(ids(2, 3))
    Plain()(ids(1, 3)[0])
    return []


def case_only_roots():
    """The model inside of another is no step of its own."""

    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Plain()

        def forward(self, tokens):
            return self.inner(tokens)

    Wrapper()(ids(2, 3))
    return [prefill(2, 6)]


def case_traced():
    """Sizes read inside of torch.jit.trace or of make_fx would become part of the program's graph."""
    model = Plain()
    model(ids(2, 3))
    traced = torch.jit.trace(model, ids(2, 3), check_trace=False)
    assert "aten::size" not in [node.kind() for node in traced.inlined_graph.nodes()]
    if torch.__version__ >= "2":
        from torch.fx.experimental.proxy_tensor import make_fx

        graph = make_fx(model, tracing_mode="symbolic", _allow_non_fake_inputs=True)(ids(2, 3))
        assert graph(ids(4, 7)).shape == (4, 7, 10)
    return [prefill(2, 6)]


def case_generate():
    """transformers' own loop."""
    try:
        import transformers
    except ImportError:
        return [] if torch.__version__ < "2" else sys.exit("no transformers")
    config = transformers.MistralConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
                                        num_attention_heads=2, num_key_value_heads=1, pad_token_id=0)
    model = transformers.MistralForCausalLM(config).eval()
    model.generate(ids(2, 6) + 1, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    return [prefill(2, 12)] + [decode(2)] * 3


if __name__ == "__main__":
    cases.run(globals())
