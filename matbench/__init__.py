"""How fast, how accurate and why: measure CUDA matrix-product kernels."""

__version__ = "0.1.0"
