__global__ void f(float *first, float *second, float *third, int m, int n, int k) {
  int r = blockIdx.y * 8 + threadIdx.y, c = blockIdx.x * 8 + threadIdx.x;
  if (r >= m || c >= n) return;
  float *to = second + r * n, sum = 0;
  for (int i = 0; i < k; ++i) sum += first[r * k + i] * third[i * n + c];
  to[c] = sum;
}
