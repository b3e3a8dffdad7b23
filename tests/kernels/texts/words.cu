{
    extern __shared__ int words[];
    for (int i = 0; i < N; ++i) words[i] = i;
    long total = 0;
    for (int i = 0; i < N; ++i) total += words[i];
    C[0] = total;
}
