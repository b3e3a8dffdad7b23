void adds(int side, const float *x, const float *y, float *z) {
    for (int i = 0; i < side; ++i)
        for (int j = 0; j < side; ++j)
            for (int k = 0; k < side; ++k) z[i * side + j] += x[i * side + k] * y[k * side + j];
}
