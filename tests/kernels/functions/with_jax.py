"""Products of JAX, which rounds to TF32 on GPUs unless told otherwise."""

import jax
import jax.numpy as jnp


@jax.jit
def exact(A, B):
    return jnp.matmul(A, B, precision="highest")


@jax.jit
def rounded(A, B):
    return jnp.matmul(A, B, precision="default")
