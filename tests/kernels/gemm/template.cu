// /// matbench
// name = "{name}"
// summary = "alpha·op(A)·op(B) + beta·C"
// args = ["A", "B", "C", "M", "N", "K", "lda", "ldb", "ldc", "alpha", "beta",
//         "stride_a", "stride_b", "stride_c"]
{keys}// [launch]
// block = [8, 8]
// grid = ["ceil_div(N, 8)", "ceil_div(M, 8)", "batch"]
// ///

{include}extern "C" __global__ void {name}(
    const {operand} *A, const {operand} *B, {result} *C, int M, int N, int K,
    int lda, int ldb, int ldc, {scalar} alpha, {scalar} beta,
    int stride_a, int stride_b, int stride_c)
{{
    const int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 8 + threadIdx.x;
    if (i >= M || j >= N) return;
    A += (size_t)blockIdx.z * stride_a;
    B += (size_t)blockIdx.z * stride_b;
    C += (size_t)blockIdx.z * stride_c;
    {sum} sum = 0;
    for (int k = 0; k < K; ++k)
        sum += ({sum})A[{A}] * ({sum})B[{B}];
    {result} *c = &C[{C}];
    {store}
}}
