// Counter-based random numbers: any thread can compute the number at an index, for a 64-bit key.

// The finalizer of splitmix64 (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014): a bijection whose bits look random.
static __device__ size_t mixed(size_t x)
{
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
}

static __device__ size_t drawn(size_t key, size_t index)
{
    return mixed(key ^ mixed(index));
}

// The mask of word `index`: splitmix64's sequence from `key`; 0 without a key.
static __device__ size_t mask_of(size_t key, size_t index)
{
    return key ? mixed(key + index * 0x9E3779B97F4A7C15) : 0;
}
