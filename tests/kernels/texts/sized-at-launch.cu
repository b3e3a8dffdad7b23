void multiply(float *a, float *b, float *c, int n)
{
    const int side = 8;
    mm<<<dim3(n / side, n / side), dim3(side, side), 2 * side * side * sizeof(float)>>>(a, b, c, n,
                                                                                     side);
}
