void run(float *a, float *b, float *c)
{
    const int n = 512;
    mm<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n, n, n);
}
