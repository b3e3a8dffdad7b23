// Tiles of C: BM×BN elements for each block. The kernel defines BM, BN and BAND.
#pragma once

// A cluster has a pair of tiles, one below the other; this block has the upper or the lower one.
struct Tile { int row, column; };

static __device__ __forceinline__ int pairs_of_tiles(int M, int N)
{
    return (M + 2 * BM - 1) / (2 * BM) * ((N + BN - 1) / BN);
}

// Pairs are numbered down the columns of a band, and a band is BAND pairs high. So blocks that run at
// the same time share rows of A and columns of B in the L2 cache.
static __device__ __forceinline__ Tile tile_of(int pair, int M, int N)
{
    const int down = (M + 2 * BM - 1) / (2 * BM), across = (N + BN - 1) / BN;
    const int band = pair / (BAND * across), place = pair % (BAND * across);
    const int height = min(BAND, down - band * BAND);
    return {((band * BAND + place % height) * 2 + (int)blockIdx.x % 2) * BM, place / height * BN};
}
