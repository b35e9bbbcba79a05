"""Compares the ops of raw_ops with PyTorch's own arithmetic: check_ops.py. Ends with `N passed, N failed`."""
import itertools
import sys

import torch

import raw_ops

DEVICE = "cuda"
TOKENS, HEADS, KV_HEADS = 5, 4, 2


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype)


# ---- what the ops shall do, in ops of PyTorch


def cache_reference(key, value, key_cache, value_cache, slot_mapping):
    block_size, packed = key_cache.shape[3:]
    for token, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            block, offset = divmod(slot, block_size)
            key_cache[block, :, :, offset] = key[token].view(key.shape[1], -1, packed)
            value_cache[block, :, :, offset] = value[token]


def rotary_reference(positions, rows, head_size, cos_sin_cache, is_neox):
    cos, sin = cos_sin_cache[positions].float().unsqueeze(1).chunk(2, dim=-1)
    pairs = cos.shape[-1]
    heads = rows.float().reshape(rows.shape[0], -1, head_size)
    rotated, rest = heads[..., :2 * pairs], heads[..., 2 * pairs:]
    a, b = rotated.chunk(2, dim=-1) if is_neox else (rotated[..., ::2], rotated[..., 1::2])
    both = (a * cos - b * sin, b * cos + a * sin)
    rotated = torch.cat(both, dim=-1) if is_neox else torch.stack(both, dim=-1).flatten(-2)
    return torch.cat((rotated, rest), dim=-1).reshape(rows.shape).to(rows.dtype)


def attention_reference(query, key_cache, value_cache, scale, block_tables, seq_lens):
    rows = []
    for sequence, length in enumerate(seq_lens.tolist()):
        blocks = block_tables[sequence].long()
        # [blocks, heads, dims, offsets] -> [heads, keys, dims]
        keys = key_cache[blocks].permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)[:, :length].float()
        values = value_cache[blocks].permute(1, 0, 3, 2).flatten(1, 2)[:, :length].float()
        groups = query.shape[1] // keys.shape[0]
        keys, values = (tensor.repeat_interleave(groups, dim=0) for tensor in (keys, values))
        weights = torch.softmax(torch.einsum("hd,hkd->hk", query[sequence].float(), keys) * scale, dim=-1)
        rows.append(torch.einsum("hk,hkd->hd", weights, values))
    return torch.stack(rows).to(query.dtype)


# ---- the checks


def caches(blocks, head_size, block_size, dtype):
    packed = 16 // dtype.itemsize
    return (random(blocks, KV_HEADS, head_size // packed, block_size, packed, dtype=dtype),
            random(blocks, KV_HEADS, head_size, block_size, dtype=dtype))


def check_cache(dtype, head_size, block_size):
    ours = caches(3, head_size, block_size, dtype)
    theirs = tuple(cache.clone() for cache in ours)
    rows = random(TOKENS, 2 * KV_HEADS * head_size, dtype=dtype)  # keys and values beside each other, as in a projection
    key, value = (half.view(TOKENS, KV_HEADS, head_size) for half in rows.chunk(2, dim=-1))
    slots = torch.tensor([0, block_size - 1, -1, 2 * block_size + 3, block_size], device=DEVICE)
    raw_ops.reshape_and_cache(key, value, *ours, slots, "auto", 1.0)
    cache_reference(key, value, *theirs, slots)
    for our, their in zip(ours, theirs):
        torch.testing.assert_close(our, their, rtol=0, atol=0)


def check_rotary(dtype, head_size, rot_dim, is_neox):
    positions = torch.tensor([0, 3, 17, 31, 8], device=DEVICE)
    cos_sin = random(32, rot_dim, dtype=dtype)
    rows = random(TOKENS, (HEADS + KV_HEADS) * head_size, dtype=dtype)
    query, key = rows.split([HEADS * head_size, KV_HEADS * head_size], dim=-1)
    expected = [rotary_reference(positions, part, head_size, cos_sin, is_neox) for part in (query, key)]
    raw_ops.rotary_embedding(positions, query, key, head_size, cos_sin, is_neox)
    for our, their in zip((query, key), expected):
        torch.testing.assert_close(our, their)


def check_attention(dtype, head_size, block_size):
    lengths = [1, block_size, 2 * block_size + 5, 40]
    blocks = (max(lengths) + block_size - 1) // block_size
    key_cache, value_cache = caches(len(lengths) * blocks, head_size, block_size, dtype)
    tables = torch.randperm(len(lengths) * blocks).to(DEVICE, torch.int32).view(len(lengths), blocks)
    seq_lens = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    rows = random(len(lengths), HEADS + 2 * KV_HEADS, head_size, dtype=dtype)
    query = rows[:, :HEADS]  # strided, as a part of a projection is
    out = query.new_empty(len(lengths), HEADS, head_size)
    scale = head_size ** -0.5
    raw_ops.paged_attention_v1(out, query, key_cache, value_cache, KV_HEADS, scale, tables, seq_lens, block_size, max(lengths))
    torch.testing.assert_close(out, attention_reference(query, key_cache, value_cache, scale, tables, seq_lens))


def cases():
    dtypes = torch.float32, torch.float16, torch.bfloat16
    for dtype, head_size, block_size in itertools.product(dtypes, (64, 128), (16, 32)):
        yield check_cache, (dtype, head_size, block_size)
        yield check_attention, (dtype, head_size, block_size)
    for dtype, rot_dim, is_neox in itertools.product(dtypes, (64, 32), (True, False)):
        yield check_rotary, (dtype, 64, rot_dim, is_neox)


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False  # the reference shall be the better one
    passed, failed = 0, 0
    for check, arguments in cases():
        try:
            check(*arguments)
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"{check.__name__}{arguments}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
