import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, a_scale, b_scale, c = data
    M, K = a.shape
    N = b.shape[0]
    A = a.float() * a_scale.repeat_interleave(128, 1)[:, :K]
    B = b.float() * b_scale.mean()
    c[...] = (A @ B.T).to(torch.bfloat16)
    return c
