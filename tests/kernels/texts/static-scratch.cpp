
template <typename T> T *scratch() { static T room[COUNT]; return room; }
void mine(const float *A, const float *B, float *C, int M, int N, int K) {
    float *row = scratch<float>() + COUNT - N;
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            row[j] = 0;
            for (int k = 0; k < K; ++k) row[j] += A[i * K + k] * B[k * N + j];
            C[i * N + j] = row[j];
        }
}
