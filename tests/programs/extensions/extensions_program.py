"""A decode loop whose layers call an extension past PyTorch's dispatcher.

extensions_program.py [--graph] [--layers N] [--steps N]

Each layer writes its keys and values to a paged cache, rotates its queries and keys and attends over the cache through
raw_ops, called as plain functions, so that no op of PyTorch covers those kernels; the matrix products are ops of PyTorch.

--graph: the decode steps are replays of one CUDA graph.
Prints the tokens of each sequence and a checksum, the same in both modes.
"""
import argparse

import torch
from torch import nn

import raw_ops  # beside this file where it is built; PyTorch has to be imported first

HEADS, KV_HEADS, HEAD_SIZE, BLOCK_SIZE = 4, 2, 64, 16
HIDDEN, INTERMEDIATE, VOCAB = HEADS * HEAD_SIZE, 512, 1024
PACKED = 8  # elements of bfloat16 in 16 bytes: the innermost dimension of a key cache
BATCH, CONTEXT = 4, 40


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    return parser.parse_args()


class Batch:
    """Where each sequence stands, in device memory, so that one captured graph serves every step."""

    def __init__(self, max_seq_len):
        blocks = (max_seq_len + BLOCK_SIZE - 1) // BLOCK_SIZE
        self.max_seq_len = blocks * BLOCK_SIZE
        self.blocks = BATCH * blocks
        # Blocks dealt out in turn: those of a sequence do not lie together.
        self.block_tables = torch.arange(self.blocks, device="cuda", dtype=torch.int32).view(blocks, BATCH).t().contiguous()
        self.positions = torch.empty(BATCH, device="cuda", dtype=torch.int64)
        self.seq_lens = torch.empty(BATCH, device="cuda", dtype=torch.int32)
        self.slot_mapping = torch.empty(BATCH, device="cuda", dtype=torch.int64)
        self.reset()

    def reset(self):
        self.positions.fill_(CONTEXT)
        self.find_slots()

    def find_slots(self):
        self.seq_lens.copy_(self.positions + 1)
        block = self.block_tables.gather(1, (self.positions // BLOCK_SIZE).unsqueeze(1)).squeeze(1)
        self.slot_mapping.copy_(block * BLOCK_SIZE + self.positions % BLOCK_SIZE)

    def advance(self):
        self.positions.add_(1)
        self.find_slots()


class RotaryEmbedding(nn.Module):
    def __init__(self, max_position):
        super().__init__()
        inverse = 10000.0 ** (-torch.arange(0, HEAD_SIZE, 2, dtype=torch.float32) / HEAD_SIZE)
        angles = torch.outer(torch.arange(max_position, dtype=torch.float32), inverse)
        self.register_buffer("cos_sin_cache", torch.cat((angles.cos(), angles.sin()), dim=-1))

    def forward(self, positions, query, key):
        raw_ops.rotary_embedding(positions, query, key, HEAD_SIZE, self.cos_sin_cache, True)


class PagedAttention(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch
        # The context is as if it had been there before.
        self.register_buffer("key_cache", torch.randn(batch.blocks, KV_HEADS, HEAD_SIZE // PACKED, BLOCK_SIZE, PACKED))
        self.register_buffer("value_cache", torch.randn(batch.blocks, KV_HEADS, HEAD_SIZE, BLOCK_SIZE))

    def forward(self, query, key, value):
        batch = self.batch
        out = query.new_empty(BATCH, HEADS, HEAD_SIZE)
        raw_ops.reshape_and_cache(key.view(-1, KV_HEADS, HEAD_SIZE), value.view(-1, KV_HEADS, HEAD_SIZE), self.key_cache,
                                  self.value_cache, batch.slot_mapping, "auto", 1.0)
        raw_ops.paged_attention_v1(out, query.view(-1, HEADS, HEAD_SIZE), self.key_cache, self.value_cache, KV_HEADS,
                                   HEAD_SIZE ** -0.5, batch.block_tables, batch.seq_lens, BLOCK_SIZE, batch.max_seq_len)
        return out.view(BATCH, HIDDEN)


class Attention(nn.Module):
    def __init__(self, batch, rotary):
        super().__init__()
        self.sizes = [HIDDEN, KV_HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE]
        self.batch = batch
        self.qkv_proj = nn.Linear(HIDDEN, sum(self.sizes), bias=False)
        self.rotary_emb = rotary
        self.attn = PagedAttention(batch)
        self.o_proj = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, hidden):
        query, key, value = self.qkv_proj(hidden).split(self.sizes, dim=-1)
        self.rotary_emb(self.batch.positions, query, key)
        return self.o_proj(self.attn(query, key, value))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up_proj = nn.Linear(HIDDEN, INTERMEDIATE, bias=False)
        self.down_proj = nn.Linear(INTERMEDIATE, HIDDEN, bias=False)

    def forward(self, hidden):
        return self.down_proj(nn.functional.silu(self.up_proj(hidden)))


class Layer(nn.Module):
    def __init__(self, batch, rotary):
        super().__init__()
        self.input_norm = nn.RMSNorm(HIDDEN)
        self.attention = Attention(batch, rotary)
        self.post_attention_norm = nn.RMSNorm(HIDDEN)
        self.mlp = Mlp()

    def forward(self, hidden):
        hidden = hidden + self.attention(self.input_norm(hidden))
        return hidden + self.mlp(self.post_attention_norm(hidden))


class Decoder(nn.Module):
    def __init__(self, batch, layers):
        super().__init__()
        rotary = RotaryEmbedding(batch.max_seq_len)
        self.embed_tokens = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer(batch, rotary) for _ in range(layers))
        self.norm = nn.RMSNorm(HIDDEN)
        self.lm_head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, ids):
        hidden = self.embed_tokens(ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.lm_head(self.norm(hidden))


class Loop:
    def __init__(self, options):
        torch.manual_seed(0)
        self.batch = Batch(CONTEXT + options.steps + 1)  # the last step finds the slots of one more
        self.model = Decoder(self.batch, options.layers).to("cuda", torch.bfloat16).eval()
        self.ids = torch.empty(BATCH, device="cuda", dtype=torch.int64)
        self.logits = torch.empty(BATCH, VOCAB, device="cuda", dtype=torch.bfloat16)
        self.graph = None
        self.reset()

    def reset(self):
        """Back to the first step. What later steps left in the cache stays: each slot is written before it is read."""
        self.ids.copy_(torch.arange(1, BATCH + 1))
        self.batch.reset()

    def forward(self):
        self.logits.copy_(self.model(self.ids))
        self.ids.copy_(self.logits.argmax(dim=-1))
        self.batch.advance()

    def step(self):
        self.graph.replay() if self.graph else self.forward()

    def warm_up(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.forward()
        torch.cuda.current_stream().wait_stream(stream)

    def capture(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.forward()
        self.graph = graph


def run(loop, steps):
    tokens = []
    for _ in range(steps):
        torch.cuda.nvtx.range_push("phase:decode")
        loop.step()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        tokens.append(loop.ids.tolist())
    return tokens


def main():
    options = parse_arguments()
    with torch.inference_mode():
        loop = Loop(options)
        loop.warm_up()
        if options.graph:
            loop.capture()
        loop.reset()
        tokens = run(loop, options.steps)
        for index, sequence in enumerate(zip(*tokens)):
            print(f"tokens[{index}]: {' '.join(map(str, sequence))}")
        print(f"checksum {loop.logits.double().abs().sum().item():.6f}")


main()
